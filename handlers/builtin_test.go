package handlers_test

import (
	"io"
	"maps"
	"slices"
	"testing"

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
