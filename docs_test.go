package onbeat_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var sourcePath = regexp.MustCompile("`([a-z_]+/[a-z_/]*\\.(?:go|lua))`")

// A page that names a source file names one that is there: files move.
func TestDocs_nameFilesThatExist(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "README.md", "CONTRIBUTING.md", "SECURITY.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range sourcePath.FindAllStringSubmatch(string(text), -1) {
			found++
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
			}
		}
	}
	if found == 0 {
		t.Error("no page names a file: did the pattern change?")
	}
}
