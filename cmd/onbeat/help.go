package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Every command has the flags of globals. A command lists in a tag the flags that mean nothing to it, and its help hides them.
// Flags under ignores are refused before the command runs. Flags under refuses the command refuses itself, with its own reason.
const (
	ignoresTag = "ignores"
	refusesTag = "refuses"
)

// without returns the flags that this tag lists, on a command and on its parents.
func without(n *kong.Node, tag string) []string {
	var names []string
	for ; n != nil; n = n.Parent {
		if n.Tag != nil && n.Tag.Get(tag) != "" {
			names = append(names, strings.Split(n.Tag.Get(tag), ",")...)
		}
	}
	return names
}

// hasUse reports whether a flag means something to a command.
func hasUse(n *kong.Node, flag string) bool {
	return !slices.Contains(without(n, ignoresTag), flag) && !slices.Contains(without(n, refusesTag), flag)
}

// refuseIgnored refuses a flag that a command would ignore: the user expects an effect of it.
func refuseIgnored(command *kong.Context) error {
	n := command.Selected()
	ignored := without(n, ignoresTag)
	for _, p := range command.Path {
		if p.Flag != nil && slices.Contains(ignored, p.Flag.Name) {
			return &usageError{fmt.Sprintf("--%s means nothing to %s", p.Flag.Name, n.FullPath()), "leave it out"}
		}
	}
	return nil
}

// printHelp prints the purpose of a command, its own arguments and flags, examples, and at the end the global flags, a line each.
func printHelp(options kong.HelpOptions, command *kong.Context) error {
	n := command.Selected()
	if n == nil {
		n = command.Model.Node
	}
	var shared []*kong.Flag
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			if ofAll := slices.Contains(command.Model.Flags, f); ofAll && hasUse(n, f.Name) {
				shared = append(shared, f)
			}
		}
	}
	for _, f := range command.Model.Flags {
		f.Hidden = true
	}
	if err := kong.DefaultHelpPrinter(options, command); err != nil {
		return err
	}
	var b strings.Builder
	if list := examples[strings.TrimSpace(strings.TrimPrefix(n.FullPath(), "onbeat"))]; list != "" {
		fmt.Fprintf(&b, "\nExamples:\n  %s\n", strings.ReplaceAll(strings.TrimSpace(list), "\n", "\n  "))
	}
	b.WriteString("\nGlobal flags:\n")
	for _, f := range shared {
		name := f.String()
		if f.Short == 0 {
			name = "    " + name
		}
		fmt.Fprintf(&b, "  %-23s %s\n", name, f.Help)
	}
	_, err := io.WriteString(command.Stdout, b.String())
	return err
}

// usual translates the arguments that people try first, onbeat help COMMAND and onbeat --version, into our own.
func usual(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version":
		return append([]string{"version"}, args[1:]...)
	}
	return args
}

// helpOf returns a hint that names the help of the command whose arguments are wrong.
func helpOf(command *kong.Context) string {
	if command == nil || command.Selected() == nil {
		return "see onbeat --help"
	}
	return "see " + command.Selected().FullPath() + " --help"
}
