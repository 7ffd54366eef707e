package main

import (
	"context"
	"io"
	"os"

	"github.com/onbeat/onbeat/internal/input"
)

// stdin returns a reader of stdin whose reads end with ctx: a read must not go on waiting for a person after that.
func (a *app) stdin(ctx context.Context) io.Reader {
	if _, ok := a.in.(*os.File); !ok {
		return a.in
	}
	return input.Until(ctx, a.in)
}
