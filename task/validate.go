package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/wording"
)

// Limits bound what a task may hold. The zero value means the defaults.
type Limits struct {
	// Payload is the largest size of a payload, in bytes. Default 1 MiB.
	Payload int
}

// The bounds of the parts of a task.
const (
	DefaultPayloadLimit = 1 << 20
	MaxIDLen            = 256
	MaxNameLen          = 128
	MaxAttemptsLimit    = 1_000_000
	// MaxPayloadDepth is how deep lists and objects of a payload lie in each other. Readers of JSON give up at some depth, and
	// could not read a list of tasks with such a payload in it.
	MaxPayloadDepth = 1_000
)

var (
	minDue = time.UnixMilli(0)
	maxDue = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)
)

// Validate refuses, with a [*FieldError] for each field, a task that could not be enqueued: a missing or invalid type, an invalid
// ID, a payload over the limit or nested too deep, a due time before 1970 or after 9999, negative numbers.
func (t *Task) Validate(l Limits) error {
	if t.err != nil {
		return t.err
	}
	var f faults
	f.add(CheckName("type", t.Type))
	if t.ID != "" {
		f.add(CheckID("id", t.ID))
	}
	if t.Queue != "" {
		f.add(CheckName("queue", t.Queue))
	}
	f.add(t.checkPayload(l))
	f.add(CheckSecret("secret", t.Secret))
	t.checkTimes(&f)
	t.checkNumbers(&f)
	t.checkKeys(&f)
	return wording.Join(f...)
}

// faults are what is wrong with a task. To find nothing takes no memory.
type faults []error

func (f *faults) add(err error) {
	if err != nil {
		*f = append(*f, err)
	}
}

func (t *Task) checkPayload(l Limits) error {
	if limit := l.payload(); len(t.Payload) > limit {
		return &FieldError{Field: "payload", Reason: fmt.Sprintf("%d bytes, the limit is %d", len(t.Payload), limit),
			Hint: "store the data elsewhere and pass a reference"}
	}
	if isTooDeep(t.Payload) {
		return &FieldError{Field: "payload", Reason: fmt.Sprintf("nested deeper than %d", MaxPayloadDepth), Hint: "make it flatter, or pass it as text"}
	}
	return nil
}

func (l Limits) payload() int {
	if l.Payload == 0 {
		return DefaultPayloadLimit
	}
	return l.Payload
}

// isTooDeep reports whether a payload is JSON that is nested too deep.
func isTooDeep(payload []byte) bool {
	if bytes.Count(payload, []byte{'['})+bytes.Count(payload, []byte{'{'}) <= MaxPayloadDepth {
		return false // almost every payload, at a fraction of the cost
	}
	depth, deepest, inText := 0, 0, false
	for i := 0; i < len(payload); i++ {
		switch c := payload[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '[' || c == '{':
			depth++
			deepest = max(deepest, depth)
		case c == ']' || c == '}':
			depth--
		}
	}
	return deepest > MaxPayloadDepth && json.Valid(payload)
}

func (t *Task) checkTimes(f *faults) {
	if !t.Due.IsZero() {
		f.add(CheckDue("due", t.Due))
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"in", t.Delay}, {"timeout", t.Timeout}, {"backoff", t.Backoff.Base}, {"backoff_cap", t.Backoff.Cap}, {"unique_for", t.UniqueFor}} {
		if d.value < 0 {
			f.add(&FieldError{Field: d.field, Value: d.value.String(), Reason: "negative", Hint: "give a duration of zero or more"})
		}
	}
}

func (t *Task) checkNumbers(f *faults) {
	if t.MaxAttempts < 0 || t.MaxAttempts > MaxAttemptsLimit {
		f.add(&FieldError{Field: "max_attempts", Value: fmt.Sprint(t.MaxAttempts), Reason: "out of range",
			Hint: fmt.Sprintf("1 to %d, or 0 for the default of %d", MaxAttemptsLimit, DefaultMaxAttempts)})
	}
	if t.KeyLimit < 0 {
		f.add(&FieldError{Field: "key_limit", Value: fmt.Sprint(t.KeyLimit), Reason: "negative", Hint: "1 or more"})
	}
	if t.Priority < Low || t.Priority > High {
		f.add(&FieldError{Field: "priority", Value: t.Priority.String(), Reason: "unknown priority", Hint: "one of low, normal, high"})
	}
	switch t.Overlap {
	case Wait, Skip, QueueUp, Replace, Behind:
	default:
		f.add(&FieldError{Field: "overlap", Value: string(rune(t.Overlap)), Reason: "unknown policy",
			Hint: "Wait, Skip, QueueUp, Replace or Behind"})
	}
}

func (t *Task) checkKeys(f *faults) {
	for _, k := range []struct{ field, value string }{{"key", t.Key}, {"unique", t.UniqueKey}, {"trace", t.Trace}, {"tracestate", t.TraceState}} {
		if k.value != "" {
			f.add(CheckID(k.field, k.value))
		}
	}
}

// CheckAttempts refuses a number of attempts that a user wrote out and that is not above zero. For a program, a zero
// [Task.MaxAttempts] means the default; a user who writes 0 may mean no retry, or retries without end.
func CheckAttempts(n int) error {
	if n >= 1 && n <= MaxAttemptsLimit {
		return nil
	}
	return &FieldError{Field: "max_attempts", Value: fmt.Sprint(n), Reason: "out of range",
		Hint: fmt.Sprintf("1 to %d; 1 means no retry; leave it out for the default", MaxAttemptsLimit)}
}

// CheckDue refuses a time before 1970 or after 9999.
func CheckDue(field string, at time.Time) error {
	if at.Before(minDue) || at.After(maxDue) {
		return &FieldError{Field: field, Value: at.Format(time.RFC3339), Reason: "out of range", Hint: "between the years 1970 and 9999"}
	}
	return nil
}

// ParseTime reads a time in RFC 3339, and refuses what [CheckDue] refuses.
func ParseTime(field, s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, &FieldError{Field: field, Value: s, Reason: "not a time",
			Hint: "RFC 3339, such as 2030-01-31T09:00:00Z or 2030-01-31T09:00:00+09:00"}
	}
	return t, CheckDue(field, t)
}

// CheckID refuses an ID or key that is empty, over 256 bytes or not UTF-8. It also refuses . and .. and /, control characters, and
// characters that change the direction of text, by which one ID could look like another.
func CheckID(field, id string) error {
	var reason, hint string
	switch {
	case id == "":
		reason = "empty"
	case len(id) > MaxIDLen:
		reason = fmt.Sprintf("%d bytes long", len(id))
	case !utf8.ValidString(id):
		reason = "not valid UTF-8"
	case hasNoPath(id):
		reason, hint = "cannot be part of a path", "add another character"
	case strings.ContainsFunc(id, isControl):
		reason = "has a control character"
	case strings.ContainsFunc(id, isBidi):
		reason = "has a character that changes the direction of text"
		hint = "leave out U+202A to U+202E, U+2066 to U+2069, U+200E, U+200F and U+061C"
	default:
		return nil
	}
	if hint == "" {
		hint = fmt.Sprintf("1 to %d bytes of text without control characters", MaxIDLen)
	}
	return &FieldError{Field: field, Value: id, Reason: reason, Hint: hint}
}

// hasNoPath reports whether a name cannot be addressed: browsers and clients drop . and .. however they are written, and a server takes a
// slash alone for the end of the path.
func hasNoPath(name string) bool { return name == "." || name == ".." || name == "/" }

func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 }

func isBidi(r rune) bool { return r > 0xff && unicode.Is(unicode.Bidi_Control, r) }

// CheckName refuses a name of a type, a queue or a schedule that is empty, over 128 bytes, . or .. or /, or has characters other than
// letters, digits and - _ . : / +
func CheckName(field, name string) error {
	var reason string
	switch {
	case name == "":
		reason = "empty"
	case len(name) > MaxNameLen:
		reason = fmt.Sprintf("%d bytes long", len(name))
	case hasNoPath(name):
		reason = "cannot be part of a path"
	case strings.ContainsFunc(name, notInName):
		reason = "has a character that a name cannot have"
	default:
		return nil
	}
	return &FieldError{Field: field, Value: name, Reason: reason,
		Hint: fmt.Sprintf("1 to %d letters, digits or - _ . : / +", MaxNameLen)}
}

func notInName(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("-_.:/+", r)
}

// CheckSecret refuses secret paths of a payload that are no paths, and more than 100 of them; see [Secret].
func CheckSecret(field string, paths []string) error {
	if len(paths) > secret.MaxPaths {
		return &FieldError{
			Field: field, Reason: fmt.Sprintf("%d paths, the limit is %d", len(paths), secret.MaxPaths),
			Hint: "name the object around them, or * for the whole payload",
		}
	}
	for i, path := range paths {
		if reason := secret.CheckPath(path); reason != "" {
			return &FieldError{
				Field: fmt.Sprintf("%s[%d]", field, i), Value: path, Reason: reason,
				Hint: "a path such as card.number, items.*.token or headers.Authorization; * for the whole payload",
			}
		}
	}
	return nil
}
