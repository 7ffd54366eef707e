package main

import (
	"context"
	"errors"
)

type demoCmd struct{}

// Run is called when the command is given.
func (c *demoCmd) Run(_ context.Context, _ *app) error { return errors.New("not here yet") }
