package database_test

import (
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/onbeat/onbeat/internal/database"
	"github.com/onbeat/onbeat/internal/field"
	_ "github.com/onbeat/onbeat/postgres"
)

func TestParse_takesTheFileOfSQLite(t *testing.T) {
	t.Parallel()
	a, err := database.Parse("archive", "sqlite:///var/a%20b.db")
	if err != nil || a.Postgres != nil || a.File != "/var/a b.db" || a.Hide("x") != "x" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestHide_knowsThePasswordAsItIsAndAsTheURLHasIt(t *testing.T) {
	t.Parallel()
	a, err := database.Parse("outbox", "postgres://u:p%23w@h/d")
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Hide("p#w, p%23w"); strings.Contains(got, "w") {
		t.Errorf("shown: %s", got)
	}
}

func TestParse_namesTheFieldOfItsSection(t *testing.T) {
	t.Parallel()
	_, err := database.Parse("outbox", "mysql://u:hush@h/d")
	if f := field.Of(err); f == nil || f.Field != "outbox.url" || f.Value != "…" || !strings.Contains(f.Hint, "outbox.db") {
		t.Errorf("%v", err)
	}
}

// A URL whose host is missing has its password where a port would be.
func TestParse_showsNoPasswordForAPort(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"postgres://u:hush", "postgres://u:hush/5", "postgres://u:5hush?x", "postgresql://a:1,u:hush/d", "postgres://u:hush@h:x/d"} {
		if _, err := database.Parse("archive", raw); err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%s is shown: %v", raw, err)
		}
	}
}
