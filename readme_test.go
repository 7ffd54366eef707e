package onbeat_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The Go code that README.md shows to Go teams is that of a package which is compiled, and whose test runs. A block that
// begins with its package, or its comment, is a whole file.
func TestReadme_showsCodeThatRuns(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "\n## For Go teams\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var blocks []string
	for _, block := range strings.Split(section, "```go\n")[1:] {
		code, _, _ := strings.Cut(block, "```")
		blocks = append(blocks, code)
	}
	files, err := filepath.Glob("internal/billing/*.go")
	if err != nil || len(files) != len(blocks) {
		t.Fatalf("README.md shows %d blocks of the files %q, %v", len(blocks), files, err)
	}
	for _, code := range blocks {
		shown := false
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			whole := strings.Contains(code, "\npackage ") || strings.HasPrefix(code, "package ")
			shown = shown || string(source) == code || !whole && strings.HasSuffix(string(source), "\n\n"+code)
		}
		if !shown {
			t.Errorf("README.md shows code that is in no file of internal/billing:\n%s", code)
		}
	}
}
