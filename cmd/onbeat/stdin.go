package main

import (
	"context"
	"io"
	"os"
)

// stdin is what is read from a pipe or typed, until ctx ends: a read that waits for a person must not outlive that.
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
