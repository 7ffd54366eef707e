package onbeat_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	actionUsed   = regexp.MustCompile(`uses:\s*(\S+)(.*)`)
	actionPinned = regexp.MustCompile(`^\S+@[0-9a-f]{40}$`)
	actionNamed  = regexp.MustCompile(`^ # v\d+\.\d+\.\d+$`)
)

// The workflows run exactly the actions that were reviewed: a tag can be moved, a commit cannot. And the token of a run is of
// no use to the actions.
func TestWorkflows_runWhatWasLookedAt(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v: %v", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		uses := actionUsed.FindAllStringSubmatch(string(text), -1)
		checkouts := 0
		for _, u := range uses {
			if !actionPinned.MatchString(u[1]) || !actionNamed.MatchString(u[2]) {
				t.Errorf("%s: %s is not pinned by its commit, with the version behind it as a comment", name, strings.TrimSpace(u[0]))
			}
			if strings.HasPrefix(u[1], "actions/checkout@") {
				checkouts++
			}
		}
		if n := strings.Count(string(text), "persist-credentials: false"); n != checkouts {
			t.Errorf("%s: %d checkouts, of which %d keep no credentials", name, checkouts, n)
		}
		rest := string(text)
		if filepath.Base(name) == "release.yml" { // one job of it makes the release and pushes the image
			rest = strings.Replace(rest, "\n    permissions:\n      contents: write\n      packages: write\n", "\n", 1)
		}
		if !strings.Contains(rest, "\npermissions:\n  contents: read\n") || strings.Contains(rest, ": write") {
			t.Errorf("%s: its permissions are not contents: read", name)
		}
	}
}
