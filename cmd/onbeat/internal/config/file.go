package config

import (
	"context"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/input"
	"github.com/onbeat/onbeat/producer"
)

// File is a config file as it was read. The zero File says nothing, and so has every default.
type File struct {
	// Name is the file's, as the caller gave it.
	Name string
	// Redis says how to reach Redis.
	Redis Redis
	// Dispatcher are the settings of the instance. The caller adds the Log, and what flags say.
	Dispatcher onbeat.Config
	// Archive says where the archive is. It is not yet in Dispatcher: a flag or the environment may say another.
	Archive Archive
	// KeyFiles are those that hold the keys of Dispatcher.Encryption.
	KeyFiles []string
	// OutboxSecret says that outbox.url has a password that is written in the config file.
	OutboxSecret bool
	// Handlers are the settings of the handlers that the program brings.
	Handlers handlers.BuiltinConfig
	// API says how the instance serves the API.
	API API
	// Notify are the targets of notifications.
	Notify Notify
	// Heartbeat is that of the dispatcher.
	Heartbeat Heartbeat
	// Log says how the instance logs.
	Log Log
	// Schedules are those that the instance declares. It is nil if the file lacks the key: an empty list is a declaration too.
	Schedules []producer.Schedule
	// Alone says that the file is a list of schedules and nothing else, as for [File.CheckSchedules].
	Alone bool

	doc      *document
	exec     bool     // the file has settings of exec
	unset    Problems // environment variables that are not set
	lacking  Problems // the same of those to which payloads refer
	problems Problems // settings that an instance could not use
	unread   Problems // fields that could not be read; their values here are zero
}

// Log says how an instance logs.
type Log struct {
	Level  string // debug, info, warn or error; "" is info
	Format string // json or console; "" is by where it goes
}

// Threshold is the level from which on lines are logged; that of info if Level is unknown.
func (l Log) Threshold() zerolog.Level {
	switch l.Level {
	case "debug", "warn", "error":
		level, _ := zerolog.ParseLevel(l.Level)
		return level
	}
	return zerolog.InfoLevel
}

// Load reads a config file: a regular file or a pipe. The getenv function resolves ${NAME} in redis.url, archive.url, outbox.url
// and encryption.keys; pass os.Getenv.
//
// Its errors match [task.ErrInvalid]: a file that cannot be read or is not YAML. Unknown fields, and values that cannot be
// read, are for [File.Check] and [File.CheckSchedules]: use no File that neither of them has accepted.
func Load(name string, getenv func(string) string) (*File, error) {
	data, err := input.File(context.Background(), name, "config")
	if err != nil {
		return nil, err
	}
	return Parse(name, data, getenv)
}

// Parse is [Load] of a text. The name is what problems are reported with, and where relative names of files begin.
func Parse(name string, text []byte, getenv func(string) string) (*File, error) {
	doc, err := parseDocument(name, text)
	if err != nil {
		return nil, err
	}
	f := &File{Name: name, doc: doc}
	var s settings
	if doc.body.Type() == ast.SequenceType {
		f.Alone, doc.root = true, "schedules"
		f.unread = doc.decode(&s.Schedules)
	} else {
		f.unread = doc.decode(&s)
	}
	f.take(&s, getenv)
	return f, nil
}

// take turns the settings, as they are written, into those of the other packages.
func (f *File) take(s *settings, getenv func(string) string) {
	f.Redis = Redis{URL: string(s.Redis.URL), CA: string(s.Redis.TLSCA), Cert: string(s.Redis.TLSCert), Key: string(s.Redis.TLSKey)}
	f.expand(getenv)
	f.Redis.URL = f.place(f.Redis.URL)
	f.Dispatcher = s.dispatcher()
	f.takeKeys(&s.Encryption, getenv)
	f.takeArchive(&s.Archive, getenv)
	f.takeOutbox(&s.Outbox, getenv)
	f.Handlers = s.handlers()
	f.takeAPI(&s.API)
	f.takeNotify(s.Notify)
	f.takeHeartbeat(&s.Heartbeat)
	f.Log = Log{Level: string(s.Log.Level), Format: string(s.Log.Format)}
	f.exec = s.Exec != nil
	for _, err := range s.Keep.zeros() {
		f.problems = append(f.problems, f.doc.at("", err))
	}
	f.Schedules = s.Schedules
	if !f.Alone { // a list of schedules says nothing of the instances that will run them
		f.takeReferences(getenv)
	}
}

// said reports whether the file has a field, even an empty one.
func (f *File) said(field string) bool {
	if f.doc == nil {
		return false
	}
	_, there := f.doc.lines[field]
	return there
}

// At is a problem of a field at its line, for what a caller finds wrong with the file.
func (f *File) At(err error) error {
	if f.doc == nil {
		return err
	}
	return f.doc.at("", err)
}

// intsOf is a mapping of whole numbers. A mapping that is not there stays nil.
func intsOf(m map[string]integer) map[string]int {
	if m == nil {
		return nil
	}
	out := make(map[string]int, len(m))
	for k, v := range m {
		out[k] = int(v)
	}
	return out
}

// drainOf is how long to drain. A zero in the file means not at all. Without a number in the file, it is the default.
func drainOf(d *duration) time.Duration {
	switch {
	case d == nil:
		return 0
	case *d == 0:
		return -1
	}
	return time.Duration(*d)
}
