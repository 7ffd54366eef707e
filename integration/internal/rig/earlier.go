package rig

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// ErrNoHistory reports that a commit is not in the history of this working copy: it is a shallow clone, or an export.
var ErrNoHistory = errors.New("the commit is not in the history here: git fetch --unshallow, or clone with git")

// BuildAt builds the program as it was at a commit. It returns [ErrNoHistory] if the repository does not have the commit.
//
// The files of the commit are laid over this tree (go build -overlay). So packages that both have in common are compiled
// once, and the build cache keeps the others for the next time. A build in another directory would compile everything anew.
func BuildAt(commit string) (path string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	if _, err := git(root, "cat-file", "-e", commit+"^{commit}"); err != nil {
		return "", fmt.Errorf("%s: %w (%w)", commit, ErrNoHistory, err)
	}
	dir, err := os.MkdirTemp("", "onbeat-earlier-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	archive, err := git(root, "archive", "--format=tar", commit)
	if err != nil {
		return "", err
	}
	replace, err := absent(root)
	if err == nil {
		err = unpack(archive, dir, func(name, file string) { replace[filepath.Join(root, name)] = file })
	}
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", err
	}
	return Build("onbeat-"+commit[:7], "-overlay", list, "-buildvcs=false", "-ldflags", "-X main.version="+commit[:7])
}

// Program is a build of the program, by its name in rows and messages.
type Program struct{ Name, Path string }

func (p Program) String() string { return p.Name }

// Programs returns what a measurement runs: the program of this tree, and before it that of the commit that ONBEAT_BEFORE
// names, so that both are measured in one run.
func (w *World) Programs() []Program {
	w.Helper()
	now := Program{"", w.Binary()}
	commit := os.Getenv("ONBEAT_BEFORE")
	if commit == "" {
		return []Program{now}
	}
	path, err := before()
	if err != nil {
		w.Fatal("the program of ONBEAT_BEFORE:", err)
	}
	return []Program{{"as of " + commit[:min(7, len(commit))], path}, now}
}

var before = sync.OnceValues(func() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	commit, err := git(root, "rev-parse", os.Getenv("ONBEAT_BEFORE"))
	if err != nil {
		return "", err
	}
	return BuildAt(strings.TrimSpace(string(commit)))
})

// absent is an overlay in which no file of the tree exists.
func absent(root string) (map[string]string, error) {
	names, err := git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	replace := map[string]string{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		replace[filepath.Join(root, name)] = ""
	}
	return replace, nil
}

// unpack writes the files of an archive to a directory, and returns the name and the path of each.
func unpack(archive []byte, dir string, each func(name, file string)) error {
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		file := filepath.Join(dir, "tree", filepath.FromSlash(h.Name))
		text, err := io.ReadAll(r)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(file), 0o700)
		}
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		if err != nil {
			return err
		}
		each(filepath.FromSlash(h.Name), file)
	}
}

// git runs a command of git in the tree and returns its output.
func git(root string, args ...string) ([]byte, error) {
	cmd := exec.Command("git", append([]string{"-C", root}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(said.String()))
	}
	return out, nil
}
