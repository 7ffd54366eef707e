package main

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestHelp_isOnStdoutAndFine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, args := range []string{"--help", "serve --help", "schedules --help", "schedules apply --help"} {
		if out := s.must(strings.Fields(args)...); !strings.Contains(out, "Usage: onbeat") {
			t.Errorf("%s: %s", args, out)
		}
	}
}

func TestHelp_isWhatIsUsual(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	whole := s.must("--help")
	if r := s.run(""); r.code != exitAsked || r.out != "" || r.err != whole {
		t.Errorf("onbeat alone: %+v", r)
	}
	if got := s.must("help"); got != whole {
		t.Errorf("onbeat help: %s", got)
	}
	if got, want := s.must("help", "schedules", "apply"), s.must("schedules", "apply", "--help"); got != want {
		t.Errorf("onbeat help schedules apply: %s", got)
	}
	if got, want := s.must("--version"), s.must("version"); got != want {
		t.Errorf("onbeat --version: %s", got)
	}
}

func TestHelp_showsNoFlagThatMeansNothing(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, c := range []struct{ command, shown, hidden string }{
		{"tasks list", "--config --redis --namespace --json", ""},
		{"version", "--json", "--config --redis --namespace"},
		{"completion", "--help", "--config --redis --namespace --json"},
		{"demo", "--json", "--config --redis --namespace"},
		{"dev", "--config --namespace --json", "--redis"},
		{"serve", "--config --redis --namespace", "--json"},
		{"lock run", "--config --redis --namespace", "--json"},
		{"conformance", "--config --redis --json", "--namespace"},
	} {
		own, global := flagsIn(s.must(strings.Fields(c.command + " --help")...))
		flags := strings.Join(append(own, global...), "\n")
		for _, f := range strings.Fields(c.shown) {
			if !strings.Contains(flags, f) {
				t.Errorf("%s: %s is not shown", c.command, f)
			}
		}
		for _, f := range strings.Fields(c.hidden) {
			if strings.Contains(flags, f) {
				t.Errorf("%s: %s is shown", c.command, f)
			}
		}
	}
}

// The help of a command begins with what is its own. The global flags come last, each on a line of a terminal.
func TestHelp_hasTheGlobalFlagsLast(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, command := range []string{"", "tasks list", "lock run", "schedules", "demo"} {
		help := s.must(strings.Fields(command + " --help")...)
		own, global := flagsIn(help)
		if len(global) == 0 || !strings.HasSuffix(strings.TrimSpace(help), strings.TrimSpace(strings.Join(global, "\n"))) {
			t.Errorf("%s: the help does not end in the global flags:\n%s", command, help)
		}
		for _, line := range global {
			if len(line) > 80 {
				t.Errorf("%s: %d columns: %s", command, len(line), line)
			}
		}
		if strings.Contains(strings.Join(own, "\n"), "--config") {
			t.Errorf("%s: its own flags have a global one", command)
		}
	}
}

// flagsIn returns the lines of a help that show a command's own flags, and those that show global ones.
func flagsIn(help string) (own, global []string) {
	before, after, _ := strings.Cut(help, "Global flags:\n")
	for line := range strings.Lines(before) {
		if strings.HasPrefix(strings.TrimSpace(line), "-") {
			own = append(own, strings.TrimRight(line, "\n"))
		}
	}
	return own, strings.Split(strings.TrimRight(after, "\n"), "\n")
}

// Each command has examples, and the parser accepts each example.
func TestHelp_hasExamplesThatParse(t *testing.T) {
	t.Parallel()
	parser, err := newParser(&cli{}, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	left := maps.Clone(examples)
	for _, m := range commandsOf(parser.Model.Node) {
		path := strings.TrimSpace(strings.TrimPrefix(m.path, "onbeat"))
		if examples[path] == "" {
			t.Errorf("onbeat %s has no example", path)
		}
		delete(left, path)
	}
	if len(left) > 0 {
		t.Errorf("examples of no command: %v", left)
	}
	for path, list := range examples {
		for line := range strings.Lines(strings.TrimSpace(list)) {
			args := exampleArgs(line)
			if path != "" && !strings.HasPrefix(strings.Join(args, " ")+" ", path+" ") {
				t.Errorf("%s: another command: %s", path, line)
			}
			if args = usual(args); slices.Contains(args, "--help") {
				continue
			}
			parses(t, args)
		}
	}
}

// exampleArgs returns the arguments of onbeat in a line of a shell.
func exampleArgs(line string) []string {
	_, line, _ = strings.Cut(line, "onbeat ")
	line, _, _ = strings.Cut(line, " | ")
	line, _, _ = strings.Cut(line, " > ")
	var args []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	return args
}
