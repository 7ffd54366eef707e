package main

import (
	"context"
	"errors"
)

type schedulesCmd struct{}

// Run is called when the command is given.
func (c *schedulesCmd) Run(_ context.Context, _ *app) error { return errors.New("not here yet") }
