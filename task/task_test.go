package task_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/onbeat/onbeat/task"
)

func TestNew_encodesThePayload(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		payload any
		want    string
	}{
		{nil, ""},
		{[]byte("raw \x00"), "raw \x00"},
		{json.RawMessage(`{"a":1}`), `{"a":1}`},
		{"text", `"text"`},
		{map[string]int{"a": 1}, `{"a":1}`},
		{struct{ Number int }{42}, `{"Number":42}`},
	} {
		got := task.New("a", c.payload)
		if string(got.Payload) != c.want {
			t.Errorf("New(%#v) has payload %q, want %q", c.payload, got.Payload, c.want)
		}
		if err := got.Validate(task.Limits{}); err != nil {
			t.Error(err)
		}
	}
}

func TestNew_reportsAPayloadThatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	err := task.New("a", make(chan int), task.ID("x")).Validate(task.Limits{})
	if !errors.Is(err, task.ErrInvalid) {
		t.Fatalf("Validate = %v, want ErrInvalid", err)
	}
	const want = "payload: cannot be encoded as JSON: json: unsupported type: chan int (pass a value that encoding/json can marshal, or []byte)"
	if err.Error() != want {
		t.Fatalf("Validate = %q\nwant       %q", err, want)
	}
}

func TestOptions_fillTheirFields(t *testing.T) {
	t.Parallel()
	at := ms(1700000000000)
	got := task.New("a", nil, task.ID("id"), task.In(time.Second), task.Unique("u", time.Hour), task.MaxAttempts(3), task.Retry(1, 2),
		task.Timeout(4), task.Queue("q"), task.WithPriority(task.High), task.Key("k", 5), task.Keep(6), task.Trace("t"))
	want := &task.Task{Type: "a", ID: "id", Delay: time.Second, UniqueKey: "u", UniqueFor: time.Hour, MaxAttempts: 3,
		Backoff: task.Backoff{Base: 1, Cap: 2}, Timeout: 4, Queue: "q", Priority: task.High, Key: "k", KeyLimit: 5, Keep: 6, Trace: "t"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got.Apply(task.At(at)); !got.Due.Equal(at) || got.Delay != 0 {
		t.Errorf("At after In leaves due %s, delay %s", got.Due, got.Delay)
	}
	if got.Apply(task.In(time.Minute)); !got.Due.IsZero() || got.Delay != time.Minute {
		t.Errorf("In after At leaves due %s, delay %s", got.Due, got.Delay)
	}
}

func TestAt_isNeverEarly(t *testing.T) {
	t.Parallel()
	for in, want := range map[time.Time]time.Time{
		ms(5):              ms(5),
		ms(5).Add(1):       ms(6),
		ms(5).Add(999_999): ms(6),
		ms(5).Add(-1):      ms(5),
		ms(1700000000000):  ms(1700000000000),
	} {
		if got := task.New("a", nil, task.At(in)).Due; !got.Equal(want) {
			t.Errorf("At(%s) is due at %s, want %s", in, got, want)
		}
	}
}

func TestTask_defaults(t *testing.T) {
	t.Parallel()
	var none task.Task
	if none.QueueName() != "default" || none.AttemptsAllowed() != 10 || none.RunTimeout() != 30*time.Minute || none.LastError() != "" {
		t.Errorf("defaults: %q %d %s %q", none.QueueName(), none.AttemptsAllowed(), none.RunTimeout(), none.LastError())
	}
	own := task.Task{Queue: "q", MaxAttempts: 2, Timeout: time.Second}
	if own.QueueName() != "q" || own.AttemptsAllowed() != 2 || own.RunTimeout() != time.Second {
		t.Errorf("own: %q %d %s", own.QueueName(), own.AttemptsAllowed(), own.RunTimeout())
	}
}

func TestFail_keepsTheNewest(t *testing.T) {
	t.Parallel()
	var x task.Task
	for i := range task.MaxFailures + 3 {
		x.Fail(task.Failure{Attempt: i + 1, Error: fmt.Sprint(i)})
	}
	if x.Attempts != task.MaxFailures+3 || len(x.Failures) != task.MaxFailures || x.Failures[0].Attempt != 4 || x.LastError() != "7" {
		t.Fatalf("attempts %d, failures %+v", x.Attempts, x.Failures)
	}
}

func TestFail_cutsALongErrorBetweenCharacters(t *testing.T) {
	t.Parallel()
	for shift := range 4 {
		var x task.Task
		x.Fail(task.Failure{Error: strings.Repeat("a", shift) + strings.Repeat("한", task.MaxFailureText)})
		got := x.LastError()
		if !utf8.ValidString(got) || !strings.HasSuffix(got, "한…") || len(got) > task.MaxFailureText+len("…") {
			t.Errorf("shift %d: %d bytes, valid %t, end %q", shift, len(got), utf8.ValidString(got), got[len(got)-8:])
		}
	}
}

func TestParsePriority(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]task.Priority{"": task.Normal, "low": task.Low, "normal": task.Normal, "high": task.High} {
		got, err := task.ParsePriority(name)
		if err != nil || got != want {
			t.Errorf("ParsePriority(%q) = %s, %v", name, got, err)
		}
		if name != "" && got.String() != name {
			t.Errorf("String = %q, want %q", got, name)
		}
	}
	if _, err := task.ParsePriority("urgent"); err == nil || err.Error() != `priority "urgent": unknown priority (one of low, normal, high)` {
		t.Errorf("ParsePriority(urgent) = %v", err)
	}
	if got := task.Priority(7).String(); got != "Priority(7)" {
		t.Errorf("String = %q", got)
	}
}

func TestPriority_isTextInJSON(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(map[string]task.Priority{"p": task.High})
	if err != nil || string(got) != `{"p":"high"}` {
		t.Fatalf("Marshal = %s, %v", got, err)
	}
	var back map[string]task.Priority
	if err := json.Unmarshal(got, &back); err != nil || back["p"] != task.High {
		t.Fatalf("Unmarshal = %v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"p":"x"}`), &back); !errors.Is(err, task.ErrInvalid) {
		t.Fatalf("Unmarshal of an unknown one = %v", err)
	}
}

func TestParseState(t *testing.T) {
	t.Parallel()
	for _, s := range []task.State{task.Due, task.Running, task.Dead, task.Done} {
		if got, err := task.ParseState(string(s)); err != nil || got != s {
			t.Errorf("ParseState(%q) = %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "Due", "pending"} {
		if _, err := task.ParseState(s); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("ParseState(%q) = %v, want ErrInvalid", s, err)
		}
	}
}

func TestValidate_namesTheField(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 300)
	with := func(o ...task.Option) *task.Task { return task.New("a", nil, o...) }
	const name, id = " (1 to 128 letters, digits or - _ . : / +)", " (1 to 256 bytes of text without control characters)"
	for want, bad := range map[string]*task.Task{
		"type: empty" + name: task.New("", nil),
		`type "a b": has a character that a name cannot have` + name:                      task.New("a b", nil),
		`type "` + long[:60] + `…": 300 bytes long` + name:                                task.New(long, nil),
		`id "` + long[:60] + `…": 300 bytes long` + id:                                    with(task.ID(long)),
		`id "a\nb": has a control character` + id:                                         with(task.ID("a\nb")),
		`id "a\u2028b": has a control character` + id:                                     with(task.ID("a\u2028b")),
		`id "a\u0085b": has a control character` + id:                                     with(task.ID("a\u0085b")),
		`id "\xff": not valid UTF-8` + id:                                                 with(task.ID("\xff")),
		`queue "a b": has a character that a name cannot have` + name:                     with(task.Queue("a b")),
		`key "\x00": has a control character` + id:                                        with(task.Key("\x00", 1)),
		`unique "\x7f": has a control character` + id:                                     with(task.Unique("\x7f", 0)),
		`trace "` + long[:60] + `…": 300 bytes long` + id:                                 with(task.Trace(long)),
		`in "-1s": negative (give a duration of zero or more)`:                            with(task.In(-time.Second)),
		`timeout "-1s": negative (give a duration of zero or more)`:                       with(task.Timeout(-time.Second)),
		`backoff "-1s": negative (give a duration of zero or more)`:                       with(task.Retry(-time.Second, 0)),
		`backoff_cap "-1s": negative (give a duration of zero or more)`:                   with(task.Retry(0, -time.Second)),
		`unique_for "-1s": negative (give a duration of zero or more)`:                    with(task.Unique("u", -time.Second)),
		`max_attempts "-1": out of range (1 to 1000000, or 0 for the default of 10)`:      with(task.MaxAttempts(-1)),
		`max_attempts "1000001": out of range (1 to 1000000, or 0 for the default of 10)`: with(task.MaxAttempts(1_000_001)),
		`key_limit "-1": negative (1 or more)`:                                            with(task.Key("k", -1)),
		`priority "Priority(2)": unknown priority (one of low, normal, high)`:             with(task.WithPriority(2)),
		`overlap ":": unknown policy (Wait, Skip, QueueUp, Replace or Behind)`:            with(func(t *task.Task) { t.Overlap = ':' }),
		`due "1969-12-31T23:59:59Z": out of range (between the years 1970 and 9999)`:      with(task.At(ms(-1000))),
		`due "10000-01-01T00:00:00Z": out of range (between the years 1970 and 9999)`:     with(task.At(ms(253402300800000))),
	} {
		err := bad.Validate(task.Limits{})
		if err == nil || err.Error() != want {
			t.Errorf("Validate = %v\nwant       %s", err, want)
		}
		var f *task.FieldError
		if !errors.As(err, &f) || !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%v is no FieldError that matches ErrInvalid", err)
		}
	}
}

// A list of tasks that has such a payload in it could not be read by programs that bound the depth of JSON.
func TestValidate_refusesAPayloadThatIsNestedTooDeep(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	for payload, want := range map[string]string{
		nested(task.MaxPayloadDepth):                                    "",
		`{"a":` + nested(task.MaxPayloadDepth) + `}`:                    "payload: nested deeper than 1000 (make it flatter, or pass it as text)",
		strings.Repeat(`{"a":`, 1001) + "1" + strings.Repeat("}", 1001): "payload: nested deeper than 1000 (make it flatter, or pass it as text)",
		`["\"` + strings.Repeat("[", 2000) + `"]`:                       "",
		strings.Repeat("[", 2000):                                       "", // not JSON
	} {
		tk := task.New("job", nil)
		tk.Payload = []byte(payload)
		var got string
		if err := tk.Validate(task.Limits{}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.20q of %d bytes: %s", payload, len(payload), got)
		}
	}
}

func TestValidate_acceptsTheBounds(t *testing.T) {
	t.Parallel()
	ok := task.New(strings.Repeat("a", task.MaxNameLen), nil, task.ID(strings.Repeat("é", task.MaxIDLen/2)), task.At(ms(0)), task.Queue("aZ09-_.:/+"),
		task.MaxAttempts(task.MaxAttemptsLimit), task.Keep(-1), task.Timeout(math.MaxInt64), task.Key("any key", 0), task.WithPriority(task.Low))
	for _, c := range []task.Overlap{task.Wait, task.Skip, task.QueueUp, task.Replace} {
		ok.Overlap = c
		if err := ok.Validate(task.Limits{}); err != nil {
			t.Errorf("overlap %d: %v", c, err)
		}
	}
}

func TestValidate_limitsThePayload(t *testing.T) {
	t.Parallel()
	x := task.New("a", make([]byte, task.DefaultPayloadLimit))
	if err := x.Validate(task.Limits{}); err != nil {
		t.Error(err)
	}
	const want = "payload: 1048577 bytes, the limit is 1048576 (store the data elsewhere and pass a reference)"
	if err := task.New("a", make([]byte, task.DefaultPayloadLimit+1)).Validate(task.Limits{}); err == nil || err.Error() != want {
		t.Errorf("Validate = %v", err)
	}
	if err := x.Validate(task.Limits{Payload: 10}); !errors.Is(err, task.ErrInvalid) {
		t.Errorf("with a limit of 10: %v", err)
	}
}

func TestFieldError_shortensBetweenCharacters(t *testing.T) {
	t.Parallel()
	e := &task.FieldError{Field: "f", Value: "a" + strings.Repeat("한", 40), Reason: "r"}
	if got := e.Error(); got != `f "a`+strings.Repeat("한", 19)+`…": r` {
		t.Errorf("Error = %s", got)
	}
}

func TestCheckID_refusesNone(t *testing.T) {
	t.Parallel()
	if err := task.CheckID("id", ""); err == nil || !strings.HasPrefix(err.Error(), "id: empty") {
		t.Errorf("CheckID = %v", err)
	}
}

func TestCheckID_refusesWhatTurnsTheDirectionOfText(t *testing.T) {
	t.Parallel()
	for _, r := range "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069" {
		id := "invoice-" + string(r) + "42"
		if err := task.CheckID("id", id); err == nil || !strings.Contains(err.Error(), "direction of text") {
			t.Errorf("%q: %v", id, err)
		}
		if err := task.CheckName("name", id); err == nil {
			t.Errorf("the name %q was accepted", id)
		}
	}
	for _, id := range []string{"счёт-42", "فاتورة", "発注\u200d42", "é"} {
		if err := task.CheckID("id", id); err != nil {
			t.Error(err)
		}
	}
}

func TestValidate_ofAGoodTaskAllocatesNothing(t *testing.T) {
	good := task.New("invoice.send", nil, task.ID("a"), task.Queue("mail"), task.Key("k", 1), task.Unique("u", time.Hour), task.At(time.Now()))
	if n := testing.AllocsPerRun(100, func() { _ = good.Validate(task.Limits{}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCheckID_refusesWhatNoPathCanHave(t *testing.T) {
	t.Parallel()
	for name, fine := range map[string]bool{".": false, "..": false, "/": false, "...": true, ".a": true, "a.": true, "/a": true, "a/": true} {
		if id, name := task.CheckID("id", name), task.CheckName("name", name); (id == nil) != fine || (name == nil) != fine {
			t.Errorf("%v, %v", id, name)
		}
	}
}
