package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// Check refuses a file with which an instance could not run, by [Problems] that list all faults of the file. It reads only
// the file: it does not ask Redis, nor check whether the environment has the variables that the file names, as [File.Unset]
// does.
//
// The schedules are those of an instance of the program: their task types have to be ones that the program brings.
func (f *File) Check() error {
	if f.Alone {
		return Problems{&Problem{f.Name, f.doc.firstLine(), &invalid{"the file is a list, and a config is a mapping", "put the list under schedules:"}}}
	}
	list := append(slices.Clone(f.unread), f.problems...)
	for _, check := range []func() error{
		f.checkRedis, f.checkNamespace, f.checkDispatcher, f.Handlers.Validate, f.checkArchive, f.checkAPI, f.checkNotify, f.checkHeartbeat, f.checkLog,
	} {
		list = f.add(list, "", check())
	}
	list = append(list, f.checkSchedules(task.Limits{Payload: max(f.Dispatcher.PayloadLimit, 0)}, true)...)
	return list.sorted()
}

// Unset lists, as [Problems], the environment variables in redis.url, archive.url and outbox.url that are not set. Without them the
// file cannot be used.
func (f *File) Unset() error { return slices.Clone(f.unset).sorted() }

// Lacking lists, as [Problems], the environment variables to which payloads refer and that are not set here. The instance that
// runs a task needs them: without one the run fails.
func (f *File) Lacking() error { return slices.Clone(f.lacking).sorted() }

// CheckExec refuses a file that needs the exec handler, unless the command line allows that. Its [Problems] list each place.
func (f *File) CheckExec(allowed bool) error {
	const hint = "start with --allow-exec if every caller that can enqueue may run programs here"
	if allowed {
		return nil
	}
	var list Problems
	if f.exec {
		list = f.add(list, "", refuse("exec", "", "exec is not allowed", hint))
	}
	for i := range f.Schedules {
		if f.Schedules[i].Task == "exec" {
			list = f.add(list, fmt.Sprintf("schedules[%d]", i), refuse("task", "exec", "exec is not allowed", hint))
		}
	}
	return list.sorted()
}

// add appends an error, or each of several that were joined, at its place below a path. It leaves out errors that follow
// from a field that could not be read: the value is missing for that reason.
func (f *File) add(list Problems, path string, err error) Problems {
	if err == nil {
		return list
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // one that is wrapped is one error
		for _, one := range joined.Unwrap() {
			list = f.add(list, path, one)
		}
		return list
	}
	p := f.doc.at(path, err)
	if about := field.Of(p); about != nil && f.doc.isAside(about.Field) {
		return list
	}
	return append(list, p)
}

func (f *File) checkNamespace() error {
	if !f.said("namespace") {
		return nil // a flag or the environment may say it
	}
	return queue.Partition{Namespace: f.Dispatcher.Namespace}.Validate()
}

// inFileAs are the fields of a file that have other names in [onbeat.Config].
var inFileAs = map[string]string{"caps.events": "keep.events", "caps.buffer": "archive.buffer", "caps.output": "archive.output"}

func (f *File) checkDispatcher() error {
	d := f.Dispatcher
	d.Caps.Buffer, d.Caps.Output = f.Archive.Buffer, f.Archive.Output
	return field.Rename(d.Validate(), func(name string) string { return cmp.Or(inFileAs[name], name) })
}

func (f *File) checkLog() (err error) {
	if !slices.Contains([]string{"", "debug", "info", "warn", "error"}, f.Log.Level) {
		err = refuse("log.level", f.Log.Level, "unknown level", "debug, info, warn or error")
	}
	if !slices.Contains([]string{"", "json", "console"}, f.Log.Format) {
		err = errors.Join(err, refuse("log.format", f.Log.Format, "unknown format", "json or console"))
	}
	return err
}
