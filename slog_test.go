package onbeat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// records is a slog.Handler that keeps what it is handed.
type records struct {
	level slog.LevelVar
	mu    sync.Mutex
	all   []slog.Record
}

func (r *records) Enabled(_ context.Context, l slog.Level) bool { return l >= r.level.Level() }
func (r *records) WithAttrs([]slog.Attr) slog.Handler           { return r }
func (r *records) WithGroup(string) slog.Handler                { return r }
func (r *records) Handle(_ context.Context, x slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, x)
	return nil
}

func (r *records) taken() []slog.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]slog.Record{}, r.all...)
}

func fieldsOf(r slog.Record) map[string]any {
	fields := map[string]any{}
	r.Attrs(func(a slog.Attr) bool {
		fields[a.Key] = a.Value.Any()
		return true
	})
	return fields
}

func TestSlog_aLineKeepsLevelMessageAndTypes(t *testing.T) {
	t.Parallel()
	said := &records{}
	log := onbeat.Slog(said).With().Str("instance", "i-1").Logger()
	before := time.Now()
	log.Warn().
		Str("text", "a \"b\"\n").Int64("fence", 9007199254740993).Float64("share", 0.5).Bool("dead", true).
		Strs("keys", []string{"a", "b"}).Err(io.EOF).Dur("took", 1500*time.Microsecond).
		Dict("inner", zerolog.Dict().Int("n", 1)).RawJSON("payload", []byte(`[{"a":1},null]`)).
		Msg("run failed")
	all := said.taken()
	if len(all) != 1 {
		t.Fatalf("%d records", len(all))
	}
	r := all[0]
	if r.Level != slog.LevelWarn || r.Message != "run failed" || r.Time.Before(before) || r.Time.After(time.Now()) {
		t.Errorf("%v %v %q", r.Time, r.Level, r.Message)
	}
	want := map[string]any{
		"instance": "i-1", "text": "a \"b\"\n", "fence": int64(9007199254740993), "share": 0.5, "dead": true,
		"keys": []any{"a", "b"}, "error": "EOF", "took": 1.5, "inner": []slog.Attr{slog.Int("n", 1)},
		"payload": []any{map[string]any{"a": int64(1)}, nil},
	}
	if got := fieldsOf(r); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %#v\nwant %#v", got, want)
	}
}

func TestSlog_aLineThatIsNoJSONIsNotLost(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`{"a":`, `[1,`, `{"a":1`, `nonsense`} {
		said := &records{}
		log := onbeat.Slog(said)
		log.Error().RawJSON("payload", []byte(raw)).Msg("run failed")
		all := said.taken()
		if len(all) != 1 || all[0].Level != slog.LevelError || !strings.Contains(all[0].Message, "run failed") || !strings.Contains(all[0].Message, raw) {
			t.Errorf("%s: %+v", raw, all)
		}
	}
}

func TestSlog_levels(t *testing.T) {
	t.Parallel()
	said := &records{}
	said.level.Set(slog.LevelDebug)
	log := onbeat.Slog(said)
	log.Debug().Msg("debug")
	log.Info().Msg("info")
	log.Warn().Msg("warn")
	log.Error().Msg("error")
	log.Log().Msg("none")
	var got []string
	for _, r := range said.taken() {
		got = append(got, fmt.Sprint(r.Message, " ", r.Level))
	}
	if want := "debug DEBUG, info INFO, warn WARN, error ERROR, none INFO"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// The handler decides what is written, each time: its level may change while the program runs.
func TestSlog_aDisabledLevelIsNotEvenEncoded(t *testing.T) {
	t.Parallel()
	said := &records{}
	log := onbeat.Slog(said)
	encoded := 0
	line := func() { log.Debug().Func(func(*zerolog.Event) { encoded++ }).Msg("x") }
	line()
	if n := len(said.taken()); n != 0 || encoded != 0 {
		t.Errorf("at info, %d records, encoded %d times", n, encoded)
	}
	said.level.Set(slog.LevelDebug)
	line()
	if n := len(said.taken()); n != 1 || encoded != 1 {
		t.Errorf("at debug, %d records, encoded %d times", n, encoded)
	}
}

func TestNew_refusesTwoLoggers(t *testing.T) {
	t.Parallel()
	_, err := onbeat.New(testredis.Client(t), onbeat.Config{
		Namespace: "n", Log: zerolog.New(io.Discard), Slog: slog.DiscardHandler,
	})
	var field *task.FieldError
	if !errors.As(err, &field) || field.Field != "Slog" || !strings.Contains(err.Error(), "Log (zerolog)") {
		t.Errorf("got %v", err)
	}
}

// Not parallel: slog.Default is the process's.
func TestNew_withoutALoggerWarnsWhereSlogDoes(t *testing.T) { //nolint:paralleltest // see above
	said := &records{}
	was := slog.Default()
	slog.SetDefault(slog.New(said))
	t.Cleanup(func() { slog.SetDefault(was) })
	for name, c := range map[string]onbeat.Config{"default": {}, "quiet": {Log: onbeat.Quiet}} {
		d := dispatcher(t, testredis.Client(t), c)
		must(t, d.Handle("job", panics{}))
		if _, err := d.Enqueue(t.Context(), task.New("job", nil)); err == nil {
			t.Errorf("%s: a payload whose check panics was taken", name)
		}
		all := said.taken()
		if quiet := name == "quiet"; quiet != (len(all) == 0) || !quiet && all[0].Level != slog.LevelError {
			t.Errorf("%s: logged %v", name, all)
		}
		said.all = nil
	}
	d := dispatcher(t, testredis.Client(t), onbeat.Config{})
	run(t, d)()
	for _, r := range said.taken() {
		if r.Level < slog.LevelWarn {
			t.Errorf("logged %v %q", r.Level, r.Message)
		}
	}
}

// panics is a handler whose check of a payload panics.
type panics struct{}

func (panics) Handle(context.Context, *task.Task) error { return nil }
func (panics) CheckPayload([]byte) error                { panic("no") }

func TestRun_logsToSlog(t *testing.T) {
	t.Parallel()
	var out syncBuffer
	d := dispatcher(t, testredis.Client(t), onbeat.Config{Release: "v1", Slog: slog.NewJSONHandler(&out, nil)})
	stop := run(t, d)
	testredis.Eventually(t, patience, func() bool { return strings.Contains(out.String(), `"msg":"leads"`) }, "it leads, and says so")
	stop()
	for line := range strings.Lines(out.String()) {
		var got struct{ Time, Level, Msg, Instance string }
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if got.Time == "" || got.Level == "" || got.Msg == "" || got.Instance == "" {
			t.Errorf("a line lacks something: %s", line)
		}
	}
}

// syncBuffer is a buffer that a handler writes and a test reads.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
