package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// entryOf lists the fields of a schedule as the file may have them.
func entryOf(s *producer.Schedule) (list []target) {
	for _, f := range producer.Fields() {
		list = append(list, target{name: f.Name, v: reflect.ValueOf(written(f.Name, f.Of(s))).Elem()})
	}
	last := len(list) - 1 // backoff_cap; backoff may also be a mapping of base and cap
	list[last-1].within = []target{{name: "base", v: list[last-1].v}, {name: "cap", v: list[last].v}}
	return list
}

// written points to a field of a schedule as a type that reads it as people write it.
func written(name string, at any) any {
	switch at := at.(type) {
	case *schedule.Duration:
		switch name {
		case "every":
			return (*interval)(at)
		case "jitter":
			return (*duration)(at)
		}
		return (*period)(at)
	case *time.Time:
		return (*moment)(at)
	case *task.Priority:
		return (*priority)(at)
	case *int:
		return (*attempts)(at)
	case *int64:
		return (*count)(at)
	}
	return at
}

// takeReferences looks at the environment variables to which payloads of http and heartbeats refer. Each run resolves them, and not this
// file.
func (f *File) takeReferences(getenv func(string) string) {
	for i := range f.Schedules {
		s, path := &f.Schedules[i], fmt.Sprintf("schedules[%d]", i)
		if s.Task == "http" {
			f.refersTo(path, "payload", handlers.HTTPEnv(s.Payload), ", or write $${NAME} for the text", getenv)
		}
		f.refersTo(path, "heartbeat", s.Heartbeat.Env(), "", getenv)
	}
}

func (f *File) refersTo(path, field string, names []string, or string, getenv func(string) string) {
	for _, name := range names {
		ref := "${" + name + "}"
		switch {
		case !slices.Contains(f.Handlers.HTTP.PassEnv, name):
			f.problems = append(f.problems, f.doc.at(path, refuse(field, ref, "the environment variable is not in http.pass_env",
				"add it there"+strings.ReplaceAll(or, "${NAME}", ref))))
		case getenv(name) == "":
			f.lacking = append(f.lacking, f.doc.at(path, refuse(field, ref, "the environment variable is not set", "each instance needs it")))
		}
	}
}

// CheckSchedules refuses schedules that could not run, by [Problems] that list all of them. Of the rest of the file it refuses
// only what cannot be read. A task type that the program does not bring passes: the handler may be in another program.
func (f *File) CheckSchedules(limits task.Limits) error {
	return append(slices.Clone(f.unread), f.checkSchedules(limits, false)...).sorted()
}

// checkSchedules lists what is wrong with the schedules. With known, so is a task type that the program does not bring.
func (f *File) checkSchedules(limits task.Limits, known bool) (list Problems) {
	mux := NewMux()
	first := map[string]int{}
	for i := range f.Schedules {
		s, path := &f.Schedules[i], fmt.Sprintf("schedules[%d]", i)
		list = f.add(list, path, s.Validate(limits))
		if s.Task != "" && len(s.Payload) <= cmp.Or(limits.Payload, task.DefaultPayloadLimit) {
			paths := secret.Join(s.Secret, f.Dispatcher.Secret[s.Task])
			list = f.add(list, path, field.Veil(secret.OfPayload(s.Payload, paths), CheckPayload(mux, s.Task, s.Payload, known)))
		}
		if before, twice := first[s.Name]; twice {
			list = f.add(list, path, refuse("name", s.Name, "declared twice",
				fmt.Sprintf("line %d declares it too; give each schedule its own name", f.doc.line(fmt.Sprintf("schedules[%d].name", before)))))
		} else if s.Name != "" {
			first[s.Name] = i
		}
	}
	return list
}

// CheckPayload asks the handler of a task type that the program brings. Other types pass, unless all must be known.
func CheckPayload(mux *handlers.Mux, typ string, payload []byte, known bool) error {
	err := mux.CheckPayload(typ, payload)
	if !errors.Is(err, handlers.ErrUnknownType) {
		return err
	}
	if !known {
		return nil
	}
	hint := "known: " + strings.Join(mux.Types(), ", ")
	if best := wording.Nearest(typ, mux.Types()); best != "" {
		hint = "did you mean " + best + "? " + hint
	}
	return refuse("task", typ, "no handler for that type", hint)
}

// NewMux returns the handlers that the program brings, to check payloads with.
func NewMux() *handlers.Mux {
	mux := handlers.NewMux()
	for typ, h := range handlers.Builtin(handlers.BuiltinConfig{AllowExec: true}) {
		if err := mux.Handle(typ, h); err != nil {
			panic(err) // the names are constants
		}
	}
	return mux
}
