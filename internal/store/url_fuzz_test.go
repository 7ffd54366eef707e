package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// A URL is refused in one line that shows no password, or makes a client; it never ends the process.
func FuzzDial(f *testing.F) {
	for _, s := range []string{
		"redis://user:hunter2@127.0.0.1:1/0?pool_size=1", "redis-sentinel://u:hunter2@a,b:1/m/3?sentinel_password=hunter2", "redis-cluster://:hunter2@a:1,b",
		"rediss://h?skip_verify=true&tls_ca=/nowhere", "redis://[::1]:1/2", "redis://h?pool_size=-1", "redis://h?min_idle_conns=9", "unix:///x", "redis://h?db=1;2", "",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if strings.Contains(raw, "min_idle_conns") || strings.Contains(raw, "%") {
			return // those are dialled at once, wherever they are
		}
		rdb, err := store.Dial(raw)
		if err == nil {
			_ = rdb.Close()
			return
		}
		var field *task.FieldError
		if !errors.As(err, &field) || field.Reason == "" || field.Hint == "" {
			t.Fatalf("%q: %#v", raw, err)
		}
		if strings.ContainsAny(err.Error(), "\r\n\x00") {
			t.Fatalf("%q: %q is not one line", raw, err)
		}
	})
}
