package main

import (
	"context"
	"errors"
)

type doctorCmd struct{}

// Run is called when the command is given.
func (c *doctorCmd) Run(_ context.Context, _ *app) error { return errors.New("not here yet") }
