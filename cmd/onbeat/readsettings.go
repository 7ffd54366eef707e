package main

import (
	"context"

	"github.com/onbeat/onbeat/internal/input"
)

// readSettings reads a YAML file that the user named, or stdin. It also returns the name for its problems.
func (a *app) readSettings(ctx context.Context, file string) (name string, data []byte, err error) {
	if file == "-" {
		data, err = input.All(a.stdin(ctx), "stdin", "file")
		return "stdin", data, err
	}
	data, err = input.File(ctx, file, "file")
	return file, data, err
}
