package main

import (
	"context"
	"errors"
)

type serveCmd struct{}

// Run is called when the command is given.
func (c *serveCmd) Run(_ context.Context, _ *app) error { return errors.New("not here yet") }
