package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// otherBench is the bench of another commit of this repository, built from git in a folder of its own. This bench runs it by its
// flags, and reads its figures, so the packages of that commit may look different.
type otherBench struct{ commit, dir, home string }

func buildOther(ctx context.Context, commit string) (o *otherBench, err error) {
	o = &otherBench{}
	if o.commit, err = command(ctx, "", "git", "rev-parse", "--short", "--verify", commit+"^{commit}"); err != nil {
		return nil, err
	}
	if o.dir, err = os.MkdirTemp("", "onbeat-bench-other-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			o.remove()
			err = fmt.Errorf("the bench of %s: %w", o.commit, err)
		}
	}()
	top, err := command(ctx, "", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	if _, err = command(ctx, top, "git", "archive", "--output="+o.dir+"/tree.tar", "--prefix=tree/", o.commit); err != nil {
		return nil, err
	}
	if _, err = command(ctx, o.dir, "tar", "-x", "-f", "tree.tar"); err != nil {
		return nil, err
	}
	o.home = filepath.Join(o.dir, "tree", "integration", "bench")
	if _, missing := os.Stat(o.home); missing != nil {
		o.home = filepath.Join(o.dir, "tree", "bench") // where it lay up to b1e9744
	}
	_, err = command(ctx, o.home, "go", "build", "-trimpath", "-buildvcs=false", "-o", o.dir+"/bench", ".")
	return o, err
}

// run has it measure onbeat in one scenario, once.
func (o *otherBench) run(ctx context.Context, s *settings, scenario string, run int) ([]result, error) {
	fmt.Fprintf(os.Stderr, "%s run %d: onbeat of %s\n", scenario, run, o.commit)
	out := filepath.Join(o.dir, "figures.jsonl")
	_, err := command(ctx, o.home, o.dir+"/bench", "-scenarios", scenario, "-peers", "onbeat", "-runs", "1", fmt.Sprintf("-quick=%t", s.quick), "-out", out)
	if err != nil {
		return nil, err
	}
	list, err := readResults(out)
	for i := range list {
		list[i].Commit, list[i].Run = o.commit, run
	}
	return list, err
}

func (o *otherBench) remove() { _ = os.RemoveAll(o.dir) }

// command runs a program in a folder and returns its output. If the program fails, the error has its error output.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	var wrong strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr = dir, &wrong
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(wrong.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
