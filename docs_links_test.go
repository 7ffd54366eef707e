package onbeat_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pageLines is the most that a page of docs may have: a longer one is two.
const pageLines = 300

var (
	pageLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	pageHeading = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	pageFence   = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```")
	notInSlug   = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// pages returns the text of each page, by its path from the root of the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	list := map[string]string{}
	for _, root := range []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "deploy", "examples"} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || filepath.Ext(path) != ".md" {
				return err
			}
			text, err := os.ReadFile(path)
			list[path] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// anchors returns what links may name in a page, as GitHub makes it of the headings.
func anchors(text string) map[string]bool {
	list := map[string]bool{}
	for _, m := range pageHeading.FindAllStringSubmatch(pageFence.ReplaceAllString(text, ""), -1) {
		list[strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return list
}

// Each link leads to a file that is there, and to a heading of it.
func TestDocs_linksLeadSomewhere(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for path, text := range all {
		for _, m := range pageLink.FindAllStringSubmatch(pageFence.ReplaceAllString(text, ""), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, "://") || strings.HasPrefix(file, "mailto:") {
				continue
			}
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			} else if anchor != "" && !anchors(all[to])[anchor] {
				t.Errorf("%s links to %s: no such heading", path, m[1])
			}
		}
	}
}

// The index leads to every page, and each page is short enough to be read.
func TestDocs_arePagesOfAnIndex(t *testing.T) {
	t.Parallel()
	all := pages(t)
	index := all["docs/README.md"]
	for path, text := range all {
		name, ok := strings.CutPrefix(path, "docs/")
		if !ok {
			continue
		}
		if n := strings.Count(text, "\n"); n > pageLines {
			t.Errorf("%s has %d lines, and may have %d", path, n, pageLines)
		}
		if name != "README.md" && !strings.Contains(index, "]("+name+")") && !strings.Contains(index, "]("+name+"#") {
			t.Errorf("docs/README.md does not lead to %s", path)
		}
	}
}
