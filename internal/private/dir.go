package private

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Dir makes a folder, for this user only, if it is missing. It refuses a folder that others own or may write to, and one
// that is reached through a link of theirs.
func Dir(name string) error {
	name = filepath.Clean(name) // with a slash at the end, a link would be followed
	if err := os.MkdirAll(name, 0o700); err != nil {
		return err
	}
	link, err := os.Lstat(name)
	if err != nil {
		return err
	}
	if err := check(name, link); err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	return check(name, info)
}

// Entry refuses a file or folder that is a link, or that others own or may write to. It checks the entries directly below a
// folder too. A missing file or folder is accepted.
func Entry(name string) error {
	info, err := os.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		return isLink(name)
	}
	if err := check(name, info); err != nil || !info.IsDir() {
		return err
	}
	below, err := os.ReadDir(name)
	if err != nil {
		return err
	}
	for _, e := range below {
		if e.IsDir() {
			continue
		}
		if err := Entry(filepath.Join(name, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
