package handlers

import (
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/wording"
)

// BuiltinConfig tunes the handlers of the onbeat program. The zero value is ready to use.
type BuiltinConfig struct {
	// HTTP tunes the http handler.
	HTTP HTTPConfig `yaml:"http"`

	// Exec tunes the exec handler.
	Exec ExecConfig `yaml:"exec"`

	// AllowExec adds the exec handler. It is not a field of the config file: only the command line may set it. Default
	// false.
	AllowExec bool `yaml:"-"`

	// Log is where echo logs. The zero Logger discards it.
	Log zerolog.Logger `yaml:"-"`
}

// Validate refuses, with one joined [*task.FieldError] for each, a number out of range. The field's name begins with the
// handler, as in http.timeout.
func (c BuiltinConfig) Validate() error {
	var list []error
	if err := c.HTTP.Validate(); err != nil {
		list = append(list, within("http", err))
	}
	if err := c.Exec.Validate(); err != nil {
		list = append(list, within("exec", err))
	}
	return wording.Join(list...)
}

// Builtin returns the handlers of the onbeat program, by type: http, echo, sleep, and exec if it is allowed.
func Builtin(cfg BuiltinConfig) map[string]TaskHandler {
	all := map[string]TaskHandler{"http": HTTP(cfg.HTTP), "echo": Echo(cfg.Log), "sleep": Sleep()}
	if cfg.AllowExec {
		all["exec"] = Exec(cfg.Exec)
	}
	return all
}
