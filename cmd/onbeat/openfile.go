package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// readFile reads a file of settings that somebody named.
func readFile(name, field string) ([]byte, error) {
	file, _, err := openFile(name, field)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return readBounded(file, name, field)
}

// readBounded reads all there is, unless that is more than a file of settings has.
func readBounded(r io.Reader, name, field string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	var path *fs.PathError
	if errors.As(err, &path) {
		return nil, unreadable(name, field, err)
	}
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, refuse(field, name, fmt.Sprintf("larger than %d MiB", maxFile>>20), "split it, or name the file that you mean")
	}
	return data, nil
}

// openFile opens a file or a pipe. A device may have no end.
func openFile(name, field string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(name) // to open a device may have effects
	if err != nil {
		return nil, nil, unreadable(name, field, err)
	}
	if err := checkReadable(name, field, info); err != nil {
		return nil, nil, err
	}
	file, err := os.Open(name)
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
	return file, info, nil
}

func checkReadable(name, field string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return refuse(field, name, "is a directory", "name a file that can be read")
	case !mode.IsRegular() && mode.Type() != fs.ModeNamedPipe:
		return refuse(field, name, "is neither a file nor a pipe", "name a file that can be read")
	}
	return nil
}

func unreadable(name, field string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return refuse(field, name, err.Error(), "name a file that can be read")
}
