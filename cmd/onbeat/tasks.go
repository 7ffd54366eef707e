package main

import (
	"context"
	"errors"
)

type tasksCmd struct{}

// Run is called when the command is given.
func (c *tasksCmd) Run(_ context.Context, _ *app) error { return errors.New("not here yet") }
