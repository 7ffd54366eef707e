package config

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/private"
	"github.com/onbeat/onbeat/outbox/sqloutbox"
)

// outboxSettings name the database of the outbox. Its url follows the rules of redis.url.
type outboxSettings struct {
	URL  text   `yaml:"url"`
	Poll period `yaml:"poll"`
}

// maxURLFile is more bytes than any URL has.
const maxURLFile = 16 << 10

const outboxHint = "postgres://user:${NAME}@host:5432/name, sqlite://FILE, or file:PATH of a file of yours that holds the URL"

// takeOutbox reads where the outbox is. A URL that lacks a variable, or whose file cannot be read, is a problem, and not an outbox
// less: its tasks would wait, and nobody would know.
func (f *File) takeOutbox(s *outboxSettings, getenv func(string) string) {
	if f.Alone || !f.said("outbox") {
		return
	}
	raw := string(s.URL)
	bare := variable.ReplaceAllString(raw, "")
	f.OutboxSecret = hasPassword(bare) || ParamsOf(bare).Get("password") != ""
	unset := len(f.unset)
	expanded := variable.ReplaceAllStringFunc(raw, func(match string) string {
		name := match[2 : len(match)-1]
		value := getenv(name)
		if value == "" {
			f.unset = append(f.unset, f.doc.at("", refuse("outbox.url", match, "the environment variable is not set", "set "+name+", or write the URL out")))
		}
		return value
	})
	if len(f.unset) > unset {
		return
	}
	at, err := f.readOutbox(expanded)
	if err != nil {
		f.problems = append(f.problems, f.doc.at("", err))
		return
	}
	f.Dispatcher.Outbox = sqloutbox.Config{URL: at, Poll: time.Duration(s.Poll)}
}

// readOutbox returns the URL itself, read from its file if it names one. Names of files are relative to the config.
func (f *File) readOutbox(raw string) (string, error) {
	if name, in := strings.CutPrefix(raw, FilePrefix); in {
		data, err := private.ReadLinked(f.path(name), maxURLFile)
		if own, ok := errors.AsType[*private.Refusal](err); ok {
			return "", refuse("outbox.url", raw, own.Reason, own.Hint)
		}
		if err != nil {
			return "", refuse("outbox.url", raw, reasonOf(err), outboxHint)
		}
		if raw = strings.TrimSpace(string(data)); raw == "" || strings.ContainsAny(raw, "\r\n") || strings.HasPrefix(raw, FilePrefix) {
			return "", refuse("outbox.url", FilePrefix+name, "does not hold one URL on a line of its own", outboxHint)
		}
	}
	name, is := strings.CutPrefix(raw, "sqlite://")
	path, err := url.PathUnescape(name)
	if !is || err != nil || path == "" || strings.ContainsAny(name, "?#:") {
		return raw, nil // the outbox refuses what it cannot use
	}
	return "sqlite://" + (&url.URL{Path: f.path(path)}).EscapedPath(), nil
}
