package input

import (
	"context"
	"io"
	"os"
)

// Until returns a reader of r whose reads end with ctx. A read of r that never returns is left behind.
func Until(ctx context.Context, r io.Reader) io.ReadCloser {
	out, w := io.Pipe()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(w, r)
		_ = w.CloseWithError(err)
	}()
	return out
}

// openUntil is [os.Open] that ends with ctx: to open a pipe takes until a program writes to it.
func openUntil(ctx context.Context, name string) (*os.File, error) {
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened)
	go func() {
		file, err := os.Open(name)
		select {
		case done <- opened{file, err}:
		case <-ctx.Done():
			_ = file.Close() // of nil it does nothing
		}
	}()
	select {
	case o := <-done:
		return o.file, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipe is a pipe whose reads end with a context.
type pipe struct {
	io.ReadCloser
	file *os.File
}

func (p pipe) Close() error {
	_ = p.ReadCloser.Close()
	return p.file.Close()
}
