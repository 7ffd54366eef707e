package main

import (
	"context"
	"errors"
)

type eventsCmd struct{}

// Run is called when the command is given.
func (c *eventsCmd) Run(_ context.Context, _ *app) error { return errors.New("not here yet") }
