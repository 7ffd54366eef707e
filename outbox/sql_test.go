package outbox_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/onbeat/onbeat/outbox"
	_ "github.com/onbeat/onbeat/postgres"
	"github.com/onbeat/onbeat/task"
)

func TestSQL_refusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"postgres://u:hush@h:5432/d?sslmode=disable": true, "postgresql://h/d": true, "sqlite:///a/b%20c.db": true, "sqlite://b.db": true, "sqlite://%zz": false,
		"": false, "mysql://u:hush@h/d": false, "sqlite://": false, "sqlite://:memory:": false, "sqlite::memory:": false, "postgres://u:hush/x@h/d": false, "sqlite:///a?x=hush": false,
		"postgres://u:hush@h:port/d": false, "postgres://u:hush@h/d?sslmode=hush": false, "hush": false,
	} {
		c := outbox.SQL{URL: url}
		err := c.Validate()
		var refused *task.FieldError
		if (err == nil) != ok || err != nil && (!errors.As(err, &refused) || refused.Field != "outbox.url") {
			t.Errorf("%s: %v", url, err)
		}
		if err != nil && strings.Contains(err.Error(), "hush") || strings.Contains(c.String(), "hush") {
			t.Errorf("%s is shown: %v, %s", url, err, c.String())
		}
	}
	for poll, ok := range map[time.Duration]bool{0: true, time.Second: true, time.Millisecond: false, -1: false, 2 * time.Hour: false} {
		if err := (outbox.SQL{URL: "sqlite://x", Poll: poll}).Validate(); (err == nil) != ok {
			t.Errorf("%s: %v", poll, err)
		}
	}
}
