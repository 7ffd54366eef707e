package main

import (
	"context"
	"errors"
)

type completionCmd struct{}

// Run is called when the command is given.
func (c *completionCmd) Run(_ context.Context, _ *app) error { return errors.New("not here yet") }
