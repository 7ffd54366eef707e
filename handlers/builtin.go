package handlers

import (
	"errors"

	"github.com/rs/zerolog"
)

// BuiltinConfig tunes the handlers that the program brings. The zero value is ready to use.
type BuiltinConfig struct {
	// HTTP tunes http.
	HTTP HTTPConfig `yaml:"http"`

	// Exec tunes exec.
	Exec ExecConfig `yaml:"exec"`

	// AllowExec adds exec. It is no field of the config file: only the command line may say so. Default false.
	AllowExec bool `yaml:"-"`

	// Log is where echo writes. The zero Logger discards it.
	Log zerolog.Logger `yaml:"-"`
}

// Validate refuses, with a [*task.FieldError] for each handler, a number out of range; the field has its handler in front, as in
// http.timeout.
func (c BuiltinConfig) Validate() error {
	var list []error
	if err := c.HTTP.Validate(); err != nil {
		list = append(list, within("http", err))
	}
	if err := c.Exec.Validate(); err != nil {
		list = append(list, within("exec", err))
	}
	return errors.Join(list...)
}

// Builtin makes the handlers that the program brings, by type: http, echo, sleep, and exec if it is allowed.
func Builtin(cfg BuiltinConfig) map[string]TaskHandler {
	all := map[string]TaskHandler{"http": HTTP(cfg.HTTP), "echo": Echo(cfg.Log), "sleep": Sleep()}
	if cfg.AllowExec {
		all["exec"] = Exec(cfg.Exec)
	}
	return all
}
