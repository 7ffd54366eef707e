package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// earlier is this bench with the library of an earlier commit: the same code measures both.
type earlier struct {
	commit  string // short
	program string
	dir     string
}

// module is the one whose earlier commit is measured.
const module = "github.com/onbeat/onbeat"

// build makes it in a folder of its own, of what git has of the commit. The working tree stays as it is.
func build(ctx context.Context, commit string) (_ *earlier, err error) {
	e := &earlier{}
	if e.commit, err = command(ctx, "git", "rev-parse", "--short", "--verify", commit+"^{commit}"); err != nil {
		return nil, err
	}
	if e.dir, err = os.MkdirTemp("", "onbeat-bench-before-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e.remove()
			err = fmt.Errorf("the bench with the library of %s: %w", commit, err)
		}
	}()
	archive, library, mod := filepath.Join(e.dir, "library.tar"), filepath.Join(e.dir, "library"), filepath.Join(e.dir, "bench.mod")
	e.program = filepath.Join(e.dir, "bench")
	err = errors.Join(os.Mkdir(library, 0o755), copyFile("go.mod", mod), copyFile("go.sum", filepath.Join(e.dir, "bench.sum")))
	for _, line := range [][]string{
		{"git", "-C", "..", "archive", "--format=tar", "--output=" + archive, e.commit},
		{"tar", "-x", "-f", archive, "-C", library},
		{"go", "mod", "edit", "-replace=" + module + "=" + library, mod},
		{"go", "build", "-mod=mod", "-modfile=" + mod, "-o", e.program, "."},
	} {
		if err == nil {
			_, err = command(ctx, line[0], line[1:]...)
		}
	}
	return e, err
}

func (e *earlier) remove() { _ = os.RemoveAll(e.dir) }

// command runs a program and returns what it says; if it fails, the error is what it says of that.
func command(ctx context.Context, name string, args ...string) (string, error) {
	var wrong strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(wrong.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}
