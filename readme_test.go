package onbeat_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The Go code that README.md and docs/go.md show is that of examples, whose tests run: a whole file, or a part of one.
func TestReadme_showsCodeThatRuns(t *testing.T) {
	t.Parallel()
	for page, folder := range map[string]string{"README.md": "examples/first-job", "docs/go.md": "examples/typed"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(text), "```go\n")[1:]
		files, err := filepath.Glob(folder + "/*.go")
		if err != nil || len(files) == 0 || len(blocks) == 0 {
			t.Fatalf("%s shows %d blocks of the files %q, %v", page, len(blocks), files, err)
		}
		for _, block := range blocks {
			code, _, _ := strings.Cut(block, "```")
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
		if string(source) == code || strings.Contains(string(source), "\n\n"+code) {
			return true
		}
	}
	return false
}
