package main

import (
	"context"
	"io"
	"os"
)

// stdin returns a reader of stdin whose reads end with ctx: a read must not go on waiting for a person after that.
func (a *app) stdin(ctx context.Context) io.Reader {
	if _, ok := a.in.(*os.File); !ok {
		return a.in
	}
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(w, a.in)
		_ = w.CloseWithError(err)
	}()
	return r
}
