package main

import (
	"context"
	"errors"
)

type instancesCmd struct{}

// Run is called when the command is given.
func (c *instancesCmd) Run(_ context.Context, _ *app) error { return errors.New("not here yet") }
