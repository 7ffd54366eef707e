package task_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onbeat/onbeat/task"
)

// The records below were written by the first release. They lie in somebody's Redis: never change them, only add.
const (
	storedFull = "1k1,q7:nightly\x03\x0cinvoice.send\x07\x04mail\x08\x02\n\x81\xd0\x95\xff\xbc1\x0c\xe1\xa4\x99\xff\xbc1\x0f\x07nightly\x10\xd1\xd6\x98\xff\xbc1" +
		"\x12\x02\x14\x07\x16\x91\xbf\x05\x18\xd1\x0f\x1a\xe1\xa7\x12\x1c\x01\x1f700-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" +
		"!\x12\xd8\xfd\x98\xff\xbc1\x01\x060197-aboom!\x0c\x90\x95\x99\xff\xbc1\x02\x00lost\x05\x08{\"n\":42}"
	storedPlain = "1.\x03\x04echo"
)

func ms(n int64) time.Time { return time.UnixMilli(n).UTC() }

func fullTask() *task.Task {
	return &task.Task{
		Type: "invoice.send", Payload: []byte(`{"n":42}`), Queue: "mail", Priority: task.High,
		Created: ms(1700000000000), Due: ms(1700000060000), Schedule: "nightly", Slot: ms(1700000050000),
		Attempts: 2, MaxAttempts: 7, Timeout: 90 * time.Second,
		Backoff: task.Backoff{Base: 2 * time.Second, Cap: 5 * time.Minute}, Keep: -1,
		Trace: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		Key:   "nightly", KeyLimit: 1, Overlap: task.QueueUp,
		Failures: []task.Failure{
			{At: ms(1700000055000), Attempt: 1, Instance: "0197-a", Error: "boom"},
			{At: ms(1700000058000), Attempt: 2, Error: "lost"},
		},
	}
}

func decode(t interface {
	Helper()
	Fatalf(string, ...any)
}, rec string) *task.Task {
	t.Helper()
	got := &task.Task{}
	if err := task.Decode(rec, got); err != nil {
		t.Fatalf("Decode(%q) = %v", rec, err)
	}
	return got
}

func TestDecode_readsRecordsOfTheFirstRelease(t *testing.T) {
	t.Parallel()
	for rec, want := range map[string]*task.Task{storedFull: fullTask(), storedPlain: {Type: "echo"}} {
		if got := decode(t, rec); !reflect.DeepEqual(got, want) {
			t.Errorf("Decode = %+v\nwant     %+v", got, want)
		}
		if got := string(task.Encode(nil, want)); got != rec {
			t.Errorf("Encode = %+q\nwant     %+q", got, rec)
		}
	}
}

func TestDecode_keepsIDAndNothingElse(t *testing.T) {
	t.Parallel()
	got := &task.Task{ID: "a", Queue: "old", Attempts: 3, Failures: []task.Failure{{Error: "old"}}}
	if err := task.Decode(storedPlain, got); err != nil {
		t.Fatal(err)
	}
	if want := (&task.Task{ID: "a", Type: "echo"}); !reflect.DeepEqual(got, want) {
		t.Fatalf("Decode = %+v, want %+v", got, want)
	}
}

func TestDecode_copiesThePayload(t *testing.T) {
	t.Parallel()
	rec := storedFull
	got := decode(t, rec)
	got.Payload[0] = 'X'
	if again := decode(t, rec); string(again.Payload) != `{"n":42}` {
		t.Fatalf("a handler's write reached the record: %q", again.Payload)
	}
}

func TestEncode_appends(t *testing.T) {
	t.Parallel()
	if got := string(task.Encode([]byte("before:"), &task.Task{Type: "echo"})); got != "before:"+storedPlain {
		t.Fatalf("Encode = %q", got)
	}
}

// A neighbour of the next release writes fields 90 (a number) and 91 (bytes), the latter twice.
const fromNewer = storedPlain + "\xb4\x01\x2a" + "\xb7\x01\x03abc" + "\xb7\x01\x01d"

func TestEncode_keepsFieldsOfANewerRelease(t *testing.T) {
	t.Parallel()
	got := decode(t, fromNewer)
	got.Fail(task.Failure{At: ms(5), Attempt: 1, Error: "boom"})
	rec := string(task.Encode(nil, got))
	for _, field := range []string{"\xb4\x01\x2a", "\xb7\x01\x03abc\xb7\x01\x01d"} {
		if !strings.Contains(rec, field) {
			t.Errorf("the rewritten record %q lost %q", rec, field)
		}
	}
	again := decode(t, rec)
	if again.Attempts != 1 || again.LastError() != "boom" {
		t.Errorf("again = %+v", again)
	}
	if twice := string(task.Encode(nil, again)); twice != rec {
		t.Errorf("a second rewrite differs:\n%q\n%q", twice, rec)
	}
}

// A known number with the other kind of value is a field of another release, too.
func TestDecode_takesAKnownNumberOfAnotherKindAsUnknown(t *testing.T) {
	t.Parallel()
	rec := storedPlain + "\x02\x07" + "\x09\x01x" // type as a number, priority as bytes
	got := decode(t, rec)
	if got.Type != "echo" || got.Priority != task.Normal {
		t.Fatalf("got %+v", got)
	}
	if again := string(task.Encode(nil, got)); again != rec {
		t.Fatalf("Encode = %q, want %q", again, rec)
	}
}

func TestDecode_keepsAnOverlapOfANewerRelease(t *testing.T) {
	t.Parallel()
	const rec = "1k3,z1:a\x03\x04echo"
	got := decode(t, rec)
	if got.Overlap != 'z' || got.Key != "a" || got.KeyLimit != 3 {
		t.Fatalf("got %+v", got)
	}
	if again := string(task.Encode(nil, got)); again != rec {
		t.Fatalf("Encode = %q, want %q", again, rec)
	}
}

func TestDecode_refuses(t *testing.T) {
	t.Parallel()
	for name, rec := range map[string]string{
		"nothing":              "",
		"a version only":       "1",
		"another version":      "2.\x03\x04echo",
		"JSON":                 `{"type":"echo"}`,
		"another kind":         "1?\x03\x04echo",
		"no type":              "1.",
		"a cut tag":            "1.\x83",
		"a cut number":         "1.\x03\x04echo\x12",
		"a cut text":           "1.\x03\x04ech",
		"a length past all":    "1.\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"an endless tag":       "1." + strings.Repeat("\xff", 12),
		"an overflowing value": "1.\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
		"a key without limit":  "1k,w1:a\x03\x04echo",
		"a limit of zero":      "1k0,w1:a\x03\x04echo",
		"a limit of letters":   "1kx,w1:a\x03\x04echo",
		"an empty key":         "1k1,w0:\x03\x04echo",
		"a key without colon":  "1k1,w1a\x03\x04echo",
		"a key past the end":   "1k1,w99:a\x03\x04echo",
		"a huge key":           "1k1,w99999999999999999999:a\x03\x04echo",
	} {
		if err := task.Decode(rec, &task.Task{}); !errors.Is(err, task.ErrRecord) {
			t.Errorf("%s: Decode(%q) = %v, want ErrRecord", name, rec, err)
		}
	}
}

func TestDecode_neverReadsACutRecordAsWhole(t *testing.T) {
	t.Parallel()
	payload := strings.Index(storedFull, "\x05\x08{")
	for i := range len(storedFull) {
		got := &task.Task{}
		if err := task.Decode(storedFull[:i], got); err == nil && i > payload {
			t.Errorf("cut at byte %d, within the payload: decoded to %+v", i, got)
		}
	}
}

func TestDecode_boundsWhatACorruptNumberSays(t *testing.T) {
	t.Parallel()
	const huge = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
	got := decode(t, storedPlain+"\x0a"+huge+"\x12"+huge+"\x14"+huge+"\x16"+huge+"\x08\x09")
	if !got.Created.IsZero() || got.Attempts > 2*task.MaxAttemptsLimit || got.MaxAttempts > task.MaxAttemptsLimit || got.Timeout <= 0 ||
		got.Priority != task.Normal {
		t.Fatalf("got %+v", got)
	}
}

func TestDecode_keepsAFailureItCannotRead(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"!\x00", "!\x01\x05", "!\x02\x05\x01", "!\x03\x05\x01\x09"} {
		got := decode(t, storedPlain+field)
		if len(got.Failures) != 0 {
			t.Errorf("%q: failures %+v", field, got.Failures)
		}
		if rec := string(task.Encode(nil, got)); rec != storedPlain+field {
			t.Errorf("Encode = %q, want %q", rec, storedPlain+field)
		}
	}
}

func manyFailures(n int) string {
	return storedPlain + strings.Repeat("!\x03\x05\x01\x00", n) + "!\x04\x06\x02\x00z"
}

func TestDecode_keepsTheNewestFailuresOnly(t *testing.T) {
	t.Parallel()
	for _, n := range []int{4, 5, 6, 100} {
		got := decode(t, manyFailures(n))
		if len(got.Failures) != task.MaxFailures || got.LastError() != "z" || got.Failures[3].Error != "" {
			t.Fatalf("of %d, kept %+v", n, got.Failures)
		}
	}
}

func TestRecord_durations(t *testing.T) {
	t.Parallel()
	for in, want := range map[time.Duration]time.Duration{
		0:                  0,
		1:                  time.Millisecond, // never becomes "not set"
		time.Millisecond:   time.Millisecond,
		1500 * time.Second: 1500 * time.Second,
		-time.Hour:         -1,
		math.MaxInt64:      math.MaxInt64 / time.Millisecond * time.Millisecond,
	} {
		got := decode(t, string(task.Encode(nil, &task.Task{Type: "a", Keep: in})))
		if got.Keep != want {
			t.Errorf("%d came back as %d, want %d", in, got.Keep, want)
		}
	}
}

func TestRecord_times(t *testing.T) {
	t.Parallel()
	for in, want := range map[time.Time]time.Time{
		{}:                       {},
		ms(0):                    ms(0),
		ms(0).Add(-time.Hour):    ms(0),
		ms(1).Add(999_999):       ms(1),
		ms(253402300799999):      ms(253402300799999), // the last of the year 9999
		ms(253402300799999 + 99): {},
	} {
		got := decode(t, string(task.Encode(nil, &task.Task{Type: "a", Due: in})))
		if !got.Due.Equal(want) {
			t.Errorf("%s came back as %s, want %s", in, got.Due, want)
		}
	}
}

// drawTask makes any task that a record carries whole.
func drawTask(r *rapid.T) *task.Task {
	millis := rapid.Custom(func(r *rapid.T) time.Time { return ms(rapid.Int64Range(0, 253402300799999).Draw(r, "ms")) })
	span := rapid.Custom(func(r *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(0, 1e9).Draw(r, "span")) * time.Millisecond
	})
	t := &task.Task{
		Type:        rapid.StringN(1, 20, -1).Draw(r, "type"),
		Queue:       rapid.SampledFrom([]string{"", "mail", "a:b/c"}).Draw(r, "queue"),
		Priority:    rapid.SampledFrom([]task.Priority{task.Low, task.Normal, task.High}).Draw(r, "priority"),
		Schedule:    rapid.String().Draw(r, "schedule"),
		Attempts:    rapid.IntRange(0, task.MaxAttemptsLimit).Draw(r, "attempts"),
		MaxAttempts: rapid.IntRange(0, task.MaxAttemptsLimit).Draw(r, "max attempts"),
		Timeout:     span.Draw(r, "timeout"),
		Backoff:     task.Backoff{Base: span.Draw(r, "base"), Cap: span.Draw(r, "cap")},
		Keep:        rapid.SampledFrom([]time.Duration{-1, 0, time.Millisecond, time.Hour}).Draw(r, "keep"),
		Trace:       rapid.String().Draw(r, "trace"),
		TraceState:  rapid.String().Draw(r, "tracestate"),
	}
	if p := rapid.SliceOf(rapid.Byte()).Draw(r, "payload"); len(p) > 0 {
		t.Payload = p
	}
	for _, at := range []*time.Time{&t.Created, &t.Due, &t.Slot} {
		if rapid.Bool().Draw(r, "has time") {
			*at = millis.Draw(r, "time")
		}
	}
	if rapid.Bool().Draw(r, "has key") {
		t.Key = rapid.StringN(1, 20, -1).Draw(r, "key")
		t.KeyLimit = rapid.IntRange(1, 1e6).Draw(r, "key limit")
		t.Overlap = rapid.SampledFrom([]task.Overlap{task.Wait, task.Skip, task.QueueUp, task.Replace, task.Behind}).Draw(r, "overlap")
	}
	for range rapid.IntRange(0, task.MaxFailures).Draw(r, "failures") {
		t.Failures = append(t.Failures, task.Failure{At: millis.Draw(r, "at"), Attempt: rapid.IntRange(0, task.MaxAttemptsLimit).Draw(r, "attempt"),
			Instance: rapid.String().Draw(r, "instance"), Error: rapid.String().Draw(r, "error")})
	}
	return t
}

func TestRecord_roundTrips(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		want := drawTask(r)
		rec := string(task.Encode(nil, want))
		if got := decode(r, rec); !reflect.DeepEqual(got, want) {
			r.Fatalf("got  %+v\nwant %+v\nrecord %q", got, want, rec)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, rec := range []string{storedFull, storedPlain, fromNewer, "1k1,w1:a\x03\x04echo", "1.!\x03\x05\x01\x09", ""} {
		f.Add(rec)
	}
	f.Fuzz(func(t *testing.T, rec string) {
		got := &task.Task{}
		if err := task.Decode(rec, got); err != nil {
			if !errors.Is(err, task.ErrRecord) {
				t.Fatalf("error %v does not match ErrRecord", err)
			}
			return
		}
		// A record that decodes can be written again, and from then on reads the same.
		once := string(task.Encode(nil, got))
		again := decode(t, once)
		if twice := string(task.Encode(nil, again)); twice != once {
			t.Fatalf("not stable:\n%q\n%q\n%q", rec, once, twice)
		}
	})
}

func benchTask() *task.Task {
	return &task.Task{Type: "invoice.send", Payload: []byte(strings.Repeat("x", 64)), Created: ms(1700000000000),
		Schedule: "nightly", Slot: ms(1700000050000), MaxAttempts: 3}
}

func TestRecord_allocations(t *testing.T) { // not parallel: it counts
	rec, buf := string(task.Encode(nil, benchTask())), make([]byte, 0, 256)
	in, out := benchTask(), task.Task{}
	if n := testing.AllocsPerRun(100, func() { buf = task.Encode(buf[:0], in) }); n != 0 {
		t.Errorf("Encode into a buffer with room allocates %v times, want 0", n)
	}
	if n := testing.AllocsPerRun(100, func() { _ = task.Decode(rec, &out) }); n != 1 {
		t.Errorf("Decode allocates %v times, want 1: the payload", n)
	}
	many := manyFailures(100_000)
	if n := testing.AllocsPerRun(1, func() { _ = task.Decode(many, &out) }); n > 10 {
		t.Errorf("Decode of a record of 100,000 failures allocates %v times", n)
	}
}
