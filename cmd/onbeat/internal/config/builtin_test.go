package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/onbeat/onbeat/handlers"
)

// A program of a user's own may have the settings of the handlers in its own file.
func TestBuiltinConfig_isReadFromYAML(t *testing.T) {
	t.Parallel()
	const file = `
http: {deny_private: true, timeout: 5s, max_redirects: -1, max_retry_after: 1m, idle_per_host: 7, idle_timeout: 2m, pass_env: [C]}
exec: {grace: 2s, pass_env: [A, B], output: 9}
`
	var got handlers.BuiltinConfig
	if err := yaml.NewDecoder(strings.NewReader(file), yaml.Strict()).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if want := (handlers.HTTPConfig{
		DenyPrivate: true, Timeout: 5 * time.Second, MaxRedirects: -1, MaxRetryAfter: time.Minute, IdlePerHost: 7, IdleTimeout: 2 * time.Minute, PassEnv: []string{"C"},
	}); !reflect.DeepEqual(got.HTTP, want) {
		t.Errorf("http = %+v", got.HTTP)
	}
	if e := got.Exec; e.Grace != 2*time.Second || !slices.Equal(e.PassEnv, []string{"A", "B"}) || e.Output != 9 {
		t.Errorf("exec = %+v", e)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	if err := yaml.NewDecoder(strings.NewReader("allowexec: true"), yaml.Strict()).Decode(&got); err == nil || got.AllowExec {
		t.Errorf("a file allowed exec: %v", err)
	}
}
