package onbeat_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A program that imports onbeat has every module of its go.mod in its module graph, and those that the tests of the imported
// packages need in its go.sum. What only a few tests need lies in modules of their own.
func TestGoMod_hasNothingThatOnlyAFewTestsNeed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "github.com/redis/go-redis/v9 ") {
		t.Fatalf("go.mod is not that of onbeat:\n%s", text)
	}
	for _, module := range []string{"porcupine", "toxiproxy", "robfig/cron", "netresearch/go-cron"} {
		if strings.Contains(strings.ToLower(string(text)), module) {
			t.Errorf("go.mod has %s: see Dependencies in CONTRIBUTING.md", module)
		}
	}
}

// A program that imports onbeat has in it only the drivers that it asks for: those of package sqlarchive or sqloutbox, or its own.
func TestPackages_bringNoDriverOfADatabase(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".", "./client", "./admin", "./api", "./audit", "./archive", "./outbox").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "github.com/redis/go-redis/v9\n") {
		t.Fatalf("these are not the packages that onbeat imports:\n%s", out)
	}
	for dep := range strings.Lines(string(out)) {
		for _, driver := range []string{"jackc/pgx", "modernc.org/", "pressly/goose", "onbeat/internal/database"} {
			if strings.Contains(dep, driver) {
				t.Errorf("a program that imports onbeat links %s", dep)
			}
		}
	}
}

// `./...` leaves nested modules out: a test in one that the Makefile does not name would run nowhere.
func TestMakefile_namesEachNestedModule(t *testing.T) {
	t.Parallel()
	var found []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (entry.Name() == "node_modules" || path != "." && strings.HasPrefix(entry.Name(), ".")) {
			return fs.SkipDir
		}
		if dir := filepath.ToSlash(filepath.Dir(path)); entry.Name() == "go.mod" && dir != "." && dir != "integration/bench" { // it has no tests
			found = append(found, dir)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([A-Z]+) +:= (.*)$`).FindAllStringSubmatch(string(makefile), -1) {
		values["$("+m[1]+")"] = m[2]
	}
	var named []string
	for _, name := range strings.Fields(values["$(MODULES)"]) {
		named = append(named, values[name])
		if n := strings.Count(string(makefile), "cd "+name+" && $(TESTENV)"); n != 1 {
			t.Errorf("%d lines of the Makefile run the tests of %s, want 1", n, name)
		}
	}
	slices.Sort(named)
	slices.Sort(found)
	if !slices.Equal(named, found) {
		t.Errorf("MODULES of the Makefile are %v, and there are %v", named, found)
	}
}
