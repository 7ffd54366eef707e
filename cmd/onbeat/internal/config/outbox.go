package config

import (
	"time"

	"github.com/onbeat/onbeat/outbox"
)

// outboxSettings name the database of the outbox. Its url follows the rules of redis.url.
type outboxSettings struct {
	URL  text   `yaml:"url"`
	Poll period `yaml:"poll"`
}

const outboxHint = "postgres://user:${NAME}@host:5432/name, sqlite://FILE, or file:PATH of a file of yours that holds the URL"

// takeOutbox reads where the outbox is. A URL that lacks a variable, or whose file cannot be read, is a problem, and not an outbox
// less: its tasks would wait, and nobody would know.
func (f *File) takeOutbox(s *outboxSettings, getenv func(string) string) {
	if f.Alone || !f.said("outbox") {
		return
	}
	unset := len(f.unset)
	at, secret := f.databaseURL("outbox.url", string(s.URL), getenv)
	f.OutboxSecret = secret
	if len(f.unset) > unset {
		return
	}
	at, err := ReadURL("outbox.url", at, outboxHint)
	if err != nil {
		f.problems = append(f.problems, f.doc.at("", err))
		return
	}
	f.Dispatcher.Outbox = outbox.SQL{URL: f.placeDatabase(at), Poll: time.Duration(s.Poll)}
}
