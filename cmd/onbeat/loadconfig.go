package main

import (
	"cmp"

	"github.com/onbeat/onbeat/config"
	"github.com/onbeat/onbeat/internal/input"
	"github.com/onbeat/onbeat/internal/private"
)

// loadConfig reads a config file, and refuses one that cannot be used.
func (a *app) loadConfig(name string) (*config.File, error) {
	data, err := a.readConfig(name)
	if err != nil {
		return nil, err
	}
	f, err := config.Parse(name, data, a.env)
	if err != nil {
		return nil, err
	}
	return f, cmp.Or(f.Unset(), f.Check())
}

// readConfig reads the file. One that was found, and that the user did not name, must be private to the user.
func (a *app) readConfig(name string) ([]byte, error) {
	if name != a.private {
		return input.File(name, "config")
	}
	data, err := private.Read(name, input.MaxSize)
	if err != nil {
		return nil, refusePrivate("config", name, err, "name another with -c")
	}
	return data, nil
}
