package main

import (
	"context"
	"errors"
)

type devCmd struct{}

// Run is called when the command is given.
func (c *devCmd) Run(_ context.Context, _ *app) error { return errors.New("not here yet") }
