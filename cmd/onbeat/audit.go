package main

import (
	"context"
	"errors"
)

type auditCmd struct{}

// Run is called when the command is given.
func (c *auditCmd) Run(_ context.Context, _ *app) error { return errors.New("not here yet") }
