package private

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Open opens a file to read and write. If the file is missing, Open makes it for this user only. It refuses a link,
// anything that is not a regular file, and a file that others own or may write to. It does not change an existing file.
func Open(name string) (*os.File, error) {
	return open(name, os.O_RDWR|os.O_CREATE, false)
}

// Read reads a file of at most limit bytes. It refuses what Open refuses.
func Read(name string, limit int64) ([]byte, error) {
	return read(name, limit, false)
}

// ReadLinked is like Read, but follows links: the user who named the file may have meant one.
func ReadLinked(name string, limit int64) ([]byte, error) {
	return read(name, limit, true)
}

func read(name string, limit int64, follow bool) ([]byte, error) {
	f, err := open(name, os.O_RDONLY, follow)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, &Refusal{name, fmt.Sprintf("larger than %d bytes", limit), "check that it is the right file"}
	}
	return data, nil
}

func open(name string, flags int, follow bool) (*os.File, error) {
	if !follow {
		flags |= noFollow
		if info, err := os.Lstat(name); err == nil && info.Mode().Type() == fs.ModeSymlink {
			return nil, isLink(name) // a better message, and for systems without the flag
		}
	}
	f, err := os.OpenFile(name, flags|noWait, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &Refusal{name, "is not a regular file", "remove it"}
	}
	if err == nil {
		err = check(name, info)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Create makes a new file for this user only. It leaves an existing file or link as it is: the error is [fs.ErrExist].
func Create(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// Replace puts a new file, for this user only, in place of what has its name. It does not open the old one.
func Replace(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
