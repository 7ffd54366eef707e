package onbeat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/task"
)

// Slog returns a logger that passes its lines to h, for what takes a zerolog.Logger: [Dialer], handlers.Log, handlers.Echo.
// A [Config] takes the slog handler itself. A line keeps its level, message and fields. Numbers, booleans, lists and groups
// keep their types. A time is a string (RFC 3339), and a duration is a number of milliseconds, as zerolog writes them.
//
// A level that h has disabled costs next to nothing, even if h changes its level while the program runs.
func Slog(h slog.Handler) zerolog.Logger {
	to := slogWriter{h}
	return zerolog.New(to).Sample(to)
}

// Quiet is a Config.Log that discards every line.
var Quiet = zerolog.Nop()

// setLog decides where log lines go. It refuses two loggers: a caller that sets both expects each line in one of them, and
// we cannot know in which. Without one, a dead task must still be seen by somebody.
func (c *Config) setLog() error {
	set := !reflect.ValueOf(c.Log).IsZero()
	switch {
	case c.Slog == nil && set:
		return nil
	case c.Slog == nil:
		c.Log = Slog(slog.Default().Handler()).Level(zerolog.WarnLevel)
		return nil
	case set:
		return &task.FieldError{Field: "Slog", Reason: "is set, and Log is set too", Hint: "set Log (zerolog) or Slog (log/slog), not both"}
	}
	c.Log = Slog(c.Slog)
	return nil
}

// slogWriter decodes each line of zerolog into its fields. zerolog encodes a field when the field is added, so the encoded
// line is the only place that has all of them.
type slogWriter struct{ h slog.Handler }

// Sample asks the handler before zerolog encodes anything. The handler may change its level, so the logger's level cannot
// be set once for all.
func (w slogWriter) Sample(l zerolog.Level) bool {
	return w.h.Enabled(context.Background(), slogLevel(l))
}

func (w slogWriter) Write(line []byte) (int, error) { return w.WriteLevel(zerolog.NoLevel, line) }

func (w slogWriter) WriteLevel(l zerolog.Level, line []byte) (int, error) {
	if !w.Sample(l) { // zerolog.DisableSampling turns off the question above
		return len(line), nil
	}
	r := slog.NewRecord(time.Now(), slogLevel(l), "", 0)
	fields, err := slogFields(line)
	if err != nil { // a RawJSON field that is not JSON, or a zerolog built to write CBOR: better a raw line than none
		r.Message = strings.TrimSpace(string(line))
	}
	for _, f := range fields {
		switch {
		case f.Key == zerolog.MessageFieldName:
			r.Message = f.Value.String()
		case f.Key != zerolog.LevelFieldName: // the record has it
			r.AddAttrs(f)
		}
	}
	return len(line), w.h.Handle(context.Background(), r)
}

func slogLevel(l zerolog.Level) slog.Level {
	switch l {
	case zerolog.TraceLevel:
		return slog.LevelDebug - 4
	case zerolog.DebugLevel:
		return slog.LevelDebug
	case zerolog.WarnLevel:
		return slog.LevelWarn
	case zerolog.ErrorLevel:
		return slog.LevelError
	case zerolog.FatalLevel, zerolog.PanicLevel:
		return slog.LevelError + 4
	}
	return slog.LevelInfo
}

// slogFields reads one object, in its order.
func slogFields(line []byte) ([]slog.Attr, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber() // a fencing token is an integer, and more than a float64 holds
	v, err := slogValue(d)
	if err != nil {
		return nil, err
	}
	if v.Kind() != slog.KindGroup {
		return nil, errors.New("a log line is not a JSON object")
	}
	return v.Group(), nil
}

// slogValue reads one value: an object becomes a group.
func slogValue(d *json.Decoder) (slog.Value, error) {
	token, err := d.Token()
	if err != nil {
		return slog.Value{}, err
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			return slogGroup(d)
		}
		return slogList(d)
	case json.Number:
		return slogNumber(v), nil
	default: // a string, a boolean or nil
		return slog.AnyValue(v), nil
	}
}

func slogGroup(d *json.Decoder) (slog.Value, error) {
	var fields []slog.Attr
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return slog.Value{}, err
		}
		v, err := slogValue(d)
		if err != nil {
			return slog.Value{}, err
		}
		name, _ := key.(string) // in JSON a key is a string
		fields = append(fields, slog.Attr{Key: name, Value: v})
	}
	_, err := d.Token() // the brace
	return slog.GroupValue(fields...), whole(err)
}

func slogList(d *json.Decoder) (slog.Value, error) {
	list := []any{}
	for d.More() {
		v, err := slogValue(d)
		if err != nil {
			return slog.Value{}, err
		}
		list = append(list, plain(v))
	}
	_, err := d.Token() // the bracket
	return slog.AnyValue(list), whole(err)
}

// plain returns the value for use in a list, where slog has no groups.
func plain(v slog.Value) any {
	if v.Kind() != slog.KindGroup {
		return v.Any()
	}
	m := map[string]any{}
	for _, f := range v.Group() {
		m[f.Key] = plain(f.Value)
	}
	return m
}

// whole turns the end of the input within a value into an error that cannot be mistaken for a regular end.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func slogNumber(n json.Number) slog.Value {
	if i, err := n.Int64(); err == nil {
		return slog.Int64Value(i)
	}
	f, err := n.Float64()
	if err != nil {
		return slog.StringValue(n.String())
	}
	return slog.Float64Value(f)
}
