package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// app carries what every command needs: the shared flags, the environment and the streams.
type app struct {
	*globals
	ctx    context.Context // ends when the program is told to
	env    func(string) string
	in     io.Reader
	out    io.Writer // in the program, out and err are each a terminal
	err    io.Writer
	style  style // of out
	parser *kong.Kong

	private   string // a config file that the program found and the user did not name
	ownRedis  bool   // the Redis is dev's own: the archive and the outbox of a config are about another
	toldFound bool   // the user knows that the command uses the Redis of a dev
}

func newApp(g *globals, env func(string) string, stdin io.Reader, stdout, stderr io.Writer) *app {
	a := &app{globals: g, ctx: context.Background(), env: env, in: stdin, out: stdout, err: stderr}
	a.style.on = a.colour(stdout)
	return a
}

// isTerminal reports whether f is a terminal, so that a person reads or writes there.
func isTerminal(f any) bool {
	if t, ok := f.(*terminal); ok {
		f = t.w
	}
	file, ok := f.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// colour reports whether to colour the output to w. See no-color.org.
func (a *app) colour(w io.Writer) bool {
	return isTerminal(w) && a.env("NO_COLOR") == "" && a.env("TERM") != "dumb"
}

// logTime is RFC 3339 with milliseconds: many schedules beat more than once a second.
const logTime = "2006-01-02T15:04:05.000Z07:00"

// log makes the log of this process on stderr. It is JSON, or text for people if the format says so or stderr is a terminal.
func (a *app) log(level zerolog.Level, format string) zerolog.Logger {
	w := zerolog.SyncWriter(a.err)
	if format == "console" || format == "" && isTerminal(a.err) {
		w = zerolog.SyncWriter(consoleLog(a.err, a.colour(a.err)))
	}
	return zerolog.New(w).Level(level).Hook(zerolog.HookFunc(func(e *zerolog.Event, _ zerolog.Level, _ string) {
		e.Str(zerolog.TimestampFieldName, time.Now().UTC().Format(logTime))
	}))
}

// printJSON prints one JSON value.
func (a *app) printJSON(v any) error {
	indent := ""
	if isTerminal(a.out) {
		indent = "  "
	}
	return a.encode(v, indent)
}

// printLine prints one JSON value on one line.
func (a *app) printLine(v any) error { return a.encode(v, "") }

func (a *app) encode(v any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := a.out.Write(plainJSON(b.Bytes()))
	return err
}

// printf prints one line for a person. A line feed in a string argument is escaped, so that it does not begin another line.
func (a *app) printf(format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = strings.ReplaceAll(s, "\n", `\n`)
		}
	}
	fmt.Fprintf(a.out, format+"\n", args...)
}

// block is a text of several lines for printf.
type block string
