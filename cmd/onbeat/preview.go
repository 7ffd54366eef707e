package main

import (
	"context"
	"errors"
)

type previewCmd struct{}

// Run is called when the command is given.
func (c *previewCmd) Run(_ context.Context, _ *app) error { return errors.New("not here yet") }
