package private

import "io/fs"

// Refusal says why a file or folder is not used, and what to do about it.
type Refusal struct {
	Name   string
	Reason string
	Hint   string
}

// Error is one line for a person.
func (r *Refusal) Error() string { return r.Name + ": " + r.Reason + " (" + r.Hint + ")" }

// writable are the permissions that let others change a file.
const writable fs.FileMode = 0o022

// check refuses a file that others own or may write to.
func check(name string, info fs.FileInfo) error {
	if err := checkOwner(name, info); err != nil {
		return err
	}
	if owned && info.Mode().Type() != fs.ModeSymlink && info.Mode().Perm()&writable != 0 { // the mode of a link means nothing
		return &Refusal{name, "others may write to it, mode " + info.Mode().Perm().String(), "check its content, then: chmod go-w " + name}
	}
	return nil
}

func isLink(name string) error {
	return &Refusal{name, "is a symbolic link", "remove it, or move its target here"}
}
