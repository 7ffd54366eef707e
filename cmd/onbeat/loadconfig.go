package main

import (
	"cmp"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/internal/input"
	"github.com/onbeat/onbeat/internal/private"
)

// loadConfig reads a config file, and refuses a file with a fault.
func (a *app) loadConfig(name string) (*config.File, error) {
	f, err := a.readConfig(name)
	if err != nil {
		return nil, err
	}
	return f, cmp.Or(f.Unset(), f.Check())
}

// readConfig reads the file. A file that the program found, and the user did not name, must be private to the user.
func (a *app) readConfig(name string) (*config.File, error) {
	if name != a.private {
		data, err := input.File(a.ctx, name, "config")
		if err != nil {
			return nil, err
		}
		return config.Parse(name, data, a.env)
	}
	data, err := private.Read(name, input.MaxSize)
	if err != nil {
		return nil, config.RefuseFile("config", name, err, "name another with -c")
	}
	return config.Parse(name, data, a.env)
}
