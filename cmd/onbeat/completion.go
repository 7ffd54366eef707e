package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" values:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints a script for the present commands and flags.
func (c *completionCmd) Run(a *app) error {
	write, ok := map[string]func([]commandModel) string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	if !ok {
		return refuse("shell", c.Shell, "unknown shell", "bash, zsh or fish")
	}
	a.printf("%s", block(strings.TrimRight(write(commandsOf(a.parser.Model.Node)), "\n")))
	return nil
}

// commandModel is a command as completion sees it.
type commandModel struct {
	path    string // "onbeat schedules list"
	subs    []wordModel
	flags   []flagModel // its own and those of its parent commands
	predict string      // what its arguments name: "file", "schedule" or ""
	values  []string    // the values that its argument can have
}

type wordModel struct{ name, help string }

type flagModel struct {
	wordModel
	short   string
	takes   bool // it takes a value
	predict string
	values  []string
}

// words returns the ways to write the flag.
func (f flagModel) words() []string {
	if f.short == "" {
		return []string{"--" + f.name}
	}
	return []string{"--" + f.name, "-" + f.short}
}

// commandsOf lists a command and all its subcommands.
func commandsOf(n *kong.Node) []commandModel {
	m := commandModel{path: n.Name}
	for p := n.Parent; p != nil; p = p.Parent {
		m.path = p.Name + " " + m.path
	}
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			if !hasUse(n, f.Name) {
				continue
			}
			m.flags = append(m.flags, flagOf(f))
		}
	}
	for _, p := range n.Positional {
		m.predict, m.values = p.Tag.Get("predict"), valuesOf(p.Tag)
	}
	var list []commandModel
	for _, sub := range n.Children {
		if sub.Type != kong.CommandNode || sub.Hidden {
			continue
		}
		m.subs = append(m.subs, wordModel{sub.Name, firstSentence(sub.Help)})
		list = append(list, commandsOf(sub)...)
	}
	return append([]commandModel{m}, list...)
}

func flagOf(f *kong.Flag) flagModel {
	m := flagModel{
		wordModel: wordModel{f.Name, firstSentence(f.Help)}, takes: !f.IsBool(),
		predict: f.Tag.Get("predict"), values: valuesOf(f.Tag),
	}
	if f.Short != 0 {
		m.short = string(f.Short)
	}
	return m
}

func valuesOf(t *kong.Tag) []string {
	return strings.FieldsFunc(t.Get("values"), func(r rune) bool { return r == ',' })
}

func firstSentence(s string) string {
	s, _, _ = strings.Cut(s, ". ")
	return strings.TrimSuffix(s, ".")
}

// flagsBy returns the words of all flags that take a value and match is, over all commands, each once.
func flagsBy(list []commandModel, is func(flagModel) bool) []string {
	var words []string
	for _, c := range list {
		for _, f := range c.flags {
			if f.takes && is(f) {
				words = append(words, f.words()...)
			}
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// quote puts text into single quotes, which all three shells know.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// listSchedules is a shell command that prints the names of the schedules, one a line. It leaves out invalid names (see
// task.CheckName): otherwise a user who can write to Redis could choose what a shell completes.
const listSchedules = `onbeat schedules list 2>/dev/null | env LC_ALL=C awk 'NR>1 && $1 !~ "[^-A-Za-z0-9_.:/+]" {print $1}'`
