package main

import (
	"context"
	"errors"
)

type enqueueCmd struct{}

// Run is called when the command is given.
func (c *enqueueCmd) Run(_ context.Context, _ *app) error { return errors.New("not here yet") }
