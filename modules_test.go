package onbeat_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A program that imports onbeat has every module of its go.mod in its module graph, and those that the tests of the imported
// packages need in its go.sum. The tests that need more are in integration, which is a module of its own.
func TestGoMod_hasNothingThatOnlyTestsFromOutsideNeed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "github.com/redis/go-redis/v9 ") {
		t.Fatalf("go.mod is not that of onbeat:\n%s", text)
	}
	for _, module := range []string{"testcontainers", "moby/", "toxiproxy", "robfig/cron", "netresearch/go-cron"} {
		if strings.Contains(strings.ToLower(string(text)), module) {
			t.Errorf("go.mod has %s: see Dependencies in CONTRIBUTING.md", module)
		}
	}
}

// A program has only the drivers in it that it imports.
func TestPackages_bringNoDriverOfADatabase(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".", "./client", "./admin", "./api", "./admin/audit", "./archive/...", "./outbox/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "github.com/redis/go-redis/v9\n") {
		t.Fatalf("these are not the packages that onbeat imports:\n%s", out)
	}
	for dep := range strings.Lines(string(out)) {
		for _, driver := range []string{"jackc/pgx", "modernc.org/"} {
			if strings.Contains(dep, driver) {
				t.Errorf("a program that imports onbeat links %s", dep)
			}
		}
	}
}
