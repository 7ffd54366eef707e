package doctor

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/outbox"
	"github.com/onbeat/onbeat/task"
)

func TestDoctor_looksIntoTheOutbox(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "shop.db")
	db, err := sql.Open("sqlite", file)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	box := &outbox.Outbox{Namespace: "shop"}
	for _, c := range []struct {
		do    func() error
		state string
		says  string
	}{
		{func() error { return nil }, Fail, "no table"},
		{func() error { return outbox.Migrate(t.Context(), db) }, OK, "0 tasks wait"},
		{func() error { return box.Add(t.Context(), db, task.New("job", nil)) }, OK, "1 tasks wait"},
		{func() error {
			_, err := db.ExecContext(t.Context(), "UPDATE onbeat_outbox SET added = added - 600000")
			return err
		}, Warn, "the oldest for 10"},
		{func() error {
			_, err := db.ExecContext(t.Context(), "UPDATE onbeat_outbox SET refused = 1, error = 'too odd'")
			return err
		}, Warn, "too odd"},
	} {
		must(t, c.do())
		d := &doctor{cfg: Config{Namespace: "shop", Outbox: outbox.SQL{URL: "sqlite://" + file}}}
		if d.outbox(t.Context()); len(d.checks) != 1 || d.checks[0].State != c.state || !strings.Contains(d.checks[0].Detail, c.says) {
			t.Errorf("%+v, want %s and %q", d.checks, c.state, c.says)
		}
	}
	d := &doctor{}
	if d.outbox(t.Context()); len(d.checks) != 0 {
		t.Errorf("without an outbox: %+v", d.checks)
	}
}
