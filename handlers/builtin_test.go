package handlers_test

import (
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/onbeat/onbeat/handlers"
)

func TestBuiltin_hasExecOnlyIfAllowed(t *testing.T) {
	t.Parallel()
	for allow, want := range map[bool][]string{false: {"echo", "http", "sleep"}, true: {"echo", "exec", "http", "sleep"}} {
		all := handlers.Builtin(handlers.BuiltinConfig{AllowExec: allow})
		if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, want) {
			t.Errorf("AllowExec %t: %q, want %q", allow, got, want)
		}
		mux := handlers.NewMux()
		for typ, h := range all {
			if err := mux.Handle(typ, h); err != nil {
				t.Error(err)
			}
		}
		_ = all["http"].(io.Closer).Close()
	}
}

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

func TestBuiltinConfig_namesTheHandler(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]handlers.BuiltinConfig{
		`http.timeout "-1ns": negative (leave it out for the default)`:                              {HTTP: handlers.HTTPConfig{Timeout: -1}},
		`http.pass_env "A-B": not a variable name (letters, digits and _, such as API_TOKEN)`:       {HTTP: handlers.HTTPConfig{PassEnv: []string{"A-B"}}},
		`http.pass_env "API_TOKEN": not a variable name (letters, digits and _, such as API_TOKEN)`: {HTTP: handlers.HTTPConfig{PassEnv: []string{"API_TOKEN=SECRET"}}},
		`exec.output "-1": negative (leave it out for the default)`:                                 {Exec: handlers.ExecConfig{Output: -1}},
	} {
		if err := cfg.Validate(); err == nil || err.Error() != want {
			t.Errorf("Validate = %v, want %s", err, want)
		}
	}
}
