package main

import (
	"fmt"
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

// printHelp prints what a command does, the flags that mean something to it, and examples.
func printHelp(options kong.HelpOptions, command *kong.Context) error {
	n := command.Selected()
	if n == nil {
		n = command.Model.Node
	}
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			f.Hidden = !hasUse(n, f.Name)
		}
	}
	if err := kong.DefaultHelpPrinter(options, command); err != nil {
		return err
	}
	list := examples[strings.TrimSpace(strings.TrimPrefix(n.FullPath(), "onbeat"))]
	if list == "" {
		return nil
	}
	_, err := fmt.Fprintln(command.Stdout, "\nExamples:\n  "+strings.ReplaceAll(strings.TrimSpace(list), "\n", "\n  "))
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
