// Package input reads the files that a caller names. It reads only regular files and pipes, up to a limit, because a device
// may have no end.
//
// If it cannot read a file, the error is a [*task.FieldError] of the field that named it.
package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/onbeat/onbeat/task"
)

// MaxSize is the largest size of a settings file, in bytes.
const MaxSize = 16 << 20

// File reads a settings file. It ends with ctx, also where a pipe has no writer.
func File(ctx context.Context, name, field string) ([]byte, error) {
	file, _, err := Open(ctx, name, field)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return All(file, name, field)
}

// All reads all of r. It refuses more than [MaxSize].
func All(r io.Reader, name, field string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	var path *fs.PathError
	if errors.As(err, &path) {
		return nil, unreadable(name, field, err)
	}
	if err != nil {
		return nil, err
	}
	if len(data) > MaxSize {
		return nil, refuse(field, name, fmt.Sprintf("larger than %d MiB", MaxSize>>20), "split it, or pass the right file")
	}
	return data, nil
}

// Open opens a file, which is an [io.Seeker], or a pipe. Opening a pipe, and reading it, ends with ctx.
func Open(ctx context.Context, name, field string) (io.ReadCloser, fs.FileInfo, error) {
	info, err := os.Stat(name) // opening a device may have effects
	if err != nil {
		return nil, nil, unreadable(name, field, err)
	}
	if err := checkReadable(name, field, info); err != nil {
		return nil, nil, err
	}
	file, err := openUntil(ctx, name)
	if err != nil && ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		return nil, nil, unreadable(name, field, err)
	}
	if info, err = file.Stat(); err == nil {
		err = checkReadable(name, field, info)
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return pipe{Until(ctx, file), file}, info, nil
	}
	return file, info, nil
}

func checkReadable(name, field string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return refuse(field, name, "is a directory", "name a readable file")
	case !mode.IsRegular() && mode.Type() != fs.ModeNamedPipe:
		return refuse(field, name, "is neither a file nor a pipe", "name a readable file")
	}
	return nil
}

func unreadable(name, field string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return refuse(field, name, err.Error(), "name a readable file")
}

func refuse(field, value, reason, hint string) error {
	return &task.FieldError{Field: field, Value: value, Reason: reason, Hint: hint}
}
