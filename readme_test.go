package onbeat_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The Go code that README.md and docs/go.md show is that of packages that are compiled, and whose tests run. A block that
// begins with its package, or its comment, is a whole file.
func TestReadme_showsCodeThatRuns(t *testing.T) {
	t.Parallel()
	for page, folder := range map[string]string{"README.md": "internal/quickstart", "docs/go.md": "internal/billing"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var blocks []string
		for _, block := range strings.Split(string(text), "```go\n")[1:] {
			code, _, _ := strings.Cut(block, "```")
			blocks = append(blocks, code)
		}
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil || len(files) != len(blocks) {
			t.Fatalf("%s shows %d blocks of the files %q, %v", page, len(blocks), files, err)
		}
		for _, code := range blocks {
			if !shown(t, code, files) {
				t.Errorf("%s shows code that is in no file of %s:\n%s", page, folder, code)
			}
		}
	}
}

func shown(t *testing.T, code string, files []string) bool {
	t.Helper()
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		whole := strings.Contains(code, "\npackage ") || strings.HasPrefix(code, "package ")
		if string(source) == code || !whole && strings.HasSuffix(string(source), "\n\n"+code) {
			return true
		}
	}
	return false
}
