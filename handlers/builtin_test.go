package handlers_test

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
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
	for field, cfg := range map[string]handlers.BuiltinConfig{
		"http.timeout":  {HTTP: handlers.HTTPConfig{Timeout: -1}},
		"http.pass_env": {HTTP: handlers.HTTPConfig{PassEnv: []string{"API_TOKEN=SECRET"}}},
		"exec.output":   {Exec: handlers.ExecConfig{Output: -1}},
	} {
		err := cfg.Validate()
		if e, ok := errors.AsType[*task.FieldError](err); !ok || e.Field != field || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%v, want %s refused", err, field)
		}
	}
}
