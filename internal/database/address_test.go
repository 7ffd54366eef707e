package database

import (
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/field"
)

func TestParse_completesWhatAURLLeavesOpen(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]struct {
		name string
		wait time.Duration
	}{
		"": {"onbeat outbox", connectTimeout}, "?application_name=shop&connect_timeout=3": {"shop", 3 * time.Second},
	} {
		a, err := Parse("outbox", "postgres://u:p%23w@h/d"+query)
		if err != nil {
			t.Fatal(err)
		}
		if name := a.Postgres.RuntimeParams["application_name"]; name != want.name || a.Postgres.ConnectTimeout != want.wait || a.Postgres.Password != "p#w" {
			t.Errorf("%q: %s, %s", query, name, a.Postgres.ConnectTimeout)
		}
		if got := a.Hide("p#w, p%23w"); strings.Contains(got, "w") {
			t.Errorf("shown: %s", got)
		}
	}
	a, err := Parse("archive", "sqlite:///var/a%20b.db")
	if err != nil || a.Postgres != nil || a.File != "/var/a b.db" || a.Hide("x") != "x" {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestParse_namesTheFieldOfItsSection(t *testing.T) {
	t.Parallel()
	_, err := Parse("outbox", "mysql://u:hush@h/d")
	if f := field.Of(err); f == nil || f.Field != "outbox.url" || f.Value != hidden || !strings.Contains(f.Hint, "outbox.db") {
		t.Errorf("%v", err)
	}
}

// A URL whose host is missing has its password where a port would be.
func TestRedacted_showsNoPasswordForAPort(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"postgres://u:hush": "postgres://…", "postgres://u:hush/5": "postgres://…", "postgres://u:5hush?x": "postgres://…", "postgresql://a:1,u:hush/d": "postgresql://…",
		"postgres://h:5432/d": "postgres://h:5432/d", "postgres://a:1,b/d?x=1": "postgres://a:1,b/d?…", "postgres://[::1]:5432/d": "postgres://[::1]:5432/d",
		"postgres:///d": "postgres:///d", "postgres://u:hush@h:x/d": "postgres://u:…@h:x/d",
	} {
		if got := Redacted(raw); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
		if _, err := Parse("archive", raw); err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%s is shown: %v", raw, err)
		}
	}
}
