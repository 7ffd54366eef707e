package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hostileNames are names of schedules that an attacker may have written into Redis.
const hostileNames = "$(touch${IFS}pwned)\n`touch${IFS}pwned`\n;touch${IFS}pwned\n*\n~\nfile\\nx\n\x1b]0;x\x07\n"

// shellWith runs a shell's script in a folder where onbeat prints these schedules, and returns the output.
func shellWith(t *testing.T, dir, shell, names, script string) string {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Skipf("no %s here", shell)
	}
	list := filepath.Join(dir, "list")
	for file, text := range map[string]string{
		list:                         "NAME  WHEN\n" + names,
		filepath.Join(dir, "onbeat"): "#!/bin/sh\nexec cat '" + list + "'\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(script)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", shell, err, out)
	}
	return string(out)
}

// notRun fails if the shell ran a name as a command.
func notRun(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("the name of a schedule was run as a command")
	}
}

func TestCompletion_inBashRunsNoNameOfASchedule(t *testing.T) {
	t.Parallel()
	script := newShell(t).must("completion", "bash")
	for _, c := range []struct{ words, cur, want string }{
		{"onbeat schedules show", "", "good\ngood-too\n"},
		{"onbeat schedules show", "good-", "good-too\n"},
		{"onbeat tasks list --schedule", "", "good\ngood-too\n"},
		{"onbeat tasks list --schedule", "good-", "good-too\n"},
	} {
		dir := t.TempDir()
		ask := script + "\nCOMP_WORDS=(" + c.words + " '" + c.cur + "')\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_onbeat\n" +
			"for x in \"${COMPREPLY[@]}\"; do printf '%s\\n' \"$x\"; done\n"
		if got := shellWith(t, dir, "bash", hostileNames+"good  x\ngood-too  x\n", ask); got != c.want {
			t.Errorf("%s %s: offers %q, want %q", c.words, c.cur, got, c.want)
		}
		notRun(t, dir)
	}
}

func TestCompletion_inBashOffersFilesAsTheyAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"f a.yaml", "f *", "f $(touch${IFS}pwned)"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask := newShell(t).must("completion", "bash") + "\nCOMP_WORDS=(onbeat serve -c f)\nCOMP_CWORD=3\n_onbeat\n" +
		"for x in \"${COMPREPLY[@]}\"; do printf '%s\\n' \"$x\"; done | LC_ALL=C sort\n"
	if got, want := shellWith(t, dir, "bash", "", ask), "f $(touch${IFS}pwned)\nf *\nf a.yaml\n"; got != want {
		t.Errorf("offers %q, want %q", got, want)
	}
	notRun(t, dir)
}

func TestCompletion_listsNamesOnlyInEveryShell(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := shellWith(t, dir, "sh", hostileNames+"good  x\n", listSchedules); got != "good\n" {
		t.Errorf("lists %q, want the one that can be a name", got)
	}
	s := newShell(t)
	for shell, eval := range map[string]string{"bash": "compgen -W \"$(", "zsh": "eval", "fish": "eval"} {
		if script := s.must("completion", shell); strings.Contains(script, eval) {
			t.Errorf("%s: the script has %q, which expands what it gets", shell, eval)
		}
	}
}

func TestCompletion_inZshRunsNoNameOfASchedule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ask := "compdef() { }\ncompadd() { shift; printf '%s\\n' \"$@\" }\n" + newShell(t).must("completion", "zsh") +
		"\nwords=(onbeat schedules show '')\nCURRENT=4\nPREFIX=\n_onbeat\n"
	if got := shellWith(t, dir, "zsh", hostileNames+"good  x\n", ask); got != "good\n" {
		t.Errorf("offers %q", got)
	}
	notRun(t, dir)
}

func TestCompletion_inFishRunsNoNameOfASchedule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ask := newShell(t).must("completion", "fish") + "\ncomplete -C 'onbeat schedules show '\n"
	if got := shellWith(t, dir, "fish", hostileNames+"good  x\n", ask); !strings.Contains(got, "good") || strings.Contains(got, "touch") {
		t.Errorf("offers %q", got)
	}
	notRun(t, dir)
}
