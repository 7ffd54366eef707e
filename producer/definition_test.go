package producer

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// stored is what this release writes. Every later one must read it.
const stored = `{"v":1,"origin":"declared","release":"v7","name":"report","every":"1m","start":"aligned","until":"2030-01-01T00:00:00Z","max_runs":9,` +
	`"jitter":"5s","missed":"all","catch_up":"2h","overlap":"queue","task":"report.build","payload":{"day":"yesterday"},"queue":"slow",` +
	`"priority":"low","timeout":"1m30s","max_attempts":5,"backoff":"250ms","backoff_cap":"1m"}`

func TestDefinition_ofAnOlderReleaseIsReadable(t *testing.T) {
	t.Parallel()
	d, err := decodeDefinition("report", stored)
	must(t, err)
	if d.Origin != Declared || d.Release != "v7" || d.Task != "report.build" || d.Queue != "slow" || d.Priority != task.Low ||
		d.Timeout != 90*time.Second || d.MaxAttempts != 5 || d.Backoff != (task.Backoff{Base: 250 * time.Millisecond, Cap: time.Minute}) ||
		d.Every != time.Minute || d.Start != schedule.StartAligned || d.MaxRuns != 9 || d.Jitter != 5*time.Second ||
		d.Missed != schedule.MissedAll || d.CatchUp != 2*time.Hour || d.Overlap != schedule.OverlapQueue || string(d.Payload) != `{"day":"yesterday"}` {
		t.Errorf("read as %+v", d)
	}
	text, err := d.encode()
	must(t, err)
	if text != stored {
		t.Errorf("written as\n%s, was\n%s", text, stored)
	}
}

func TestDefinition_ofANewerRelease(t *testing.T) {
	t.Parallel()
	d, err := decodeDefinition("s", `{"v":1,"origin":"applied","name":"s","task":"t","every":"1s","colour":"blue","weights":[1]}`)
	must(t, err)
	if d.Task != "t" || d.Every != time.Second {
		t.Errorf("read as %+v", d)
	}
	text, err := d.encode()
	must(t, err)
	again, err := decodeDefinition("s", text)
	if err != nil || string(again.newer["colour"]) != `"blue"` || string(again.newer["weights"]) != "[1]" || !same(&again.Schedule, &d.Schedule) {
		t.Errorf("written as %s: %+v, %v", text, again, err)
	}
	for _, text := range []string{`{"v":2,"origin":"applied","name":"s","task":"t","every":"1s"}`, `{`, `[]`, ``} {
		if _, err := decodeDefinition("s", text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
	for _, st := range []queue.Stored{
		{Name: "s", Definition: `{"v":1,"task":"t","every":"1s"}`, Last: "nonsense"},
		{Name: "s", Definition: `{"v":1,"task":"t","every":"1s","missed":"sometimes"}`, Last: "1 0 0 5 0"},
	} {
		if _, err := newEntry(st); err == nil {
			t.Errorf("%+v was read", st)
		}
	}
}

func TestDefinition_roundTrip(t *testing.T) {
	t.Parallel()
	ms := func(t *rapid.T, name string) time.Duration {
		return time.Duration(rapid.Int64Range(0, 1e6).Draw(t, name)) * time.Millisecond
	}
	rapid.Check(t, func(t *rapid.T) {
		s := Schedule{
			Name: "s", Task: rapid.StringMatching(`[a-z][a-z.]{0,8}`).Draw(t, "task"), Queue: rapid.StringMatching(`[a-z]{0,5}`).Draw(t, "queue"),
			Priority: rapid.SampledFrom([]task.Priority{task.Low, task.Normal, task.High}).Draw(t, "priority"),
			Timeout:  ms(t, "timeout"), MaxAttempts: rapid.IntRange(0, 50).Draw(t, "attempts"),
			Backoff: task.Backoff{Base: ms(t, "base"), Cap: ms(t, "cap")},
			Rule:    schedule.Rule{Every: time.Second + ms(t, "every"), MaxRuns: rapid.Int64Range(0, 99).Draw(t, "runs")},
		}
		if rapid.Bool().Draw(t, "payload") {
			s.Payload = json.RawMessage(`{"a":` + rapid.StringMatching(`[1-9][0-9]{0,5}`).Draw(t, "n") + `}`)
		}
		if err := s.Validate(task.Limits{}); err != nil {
			t.Fatal(err)
		}
		text, err := (&definition{definitionHead{V: 1, Origin: Applied}, s}).encode()
		if err != nil {
			t.Fatal(err)
		}
		d, err := decodeDefinition("s", text)
		if err != nil || !same(&d.Schedule, &s) || d.Timeout != s.Timeout || d.Backoff != s.Backoff || d.Priority != s.Priority {
			t.Fatalf("%+v became %+v (%v)", s, d, err)
		}
	})
}

func TestSchedule_Validate(t *testing.T) {
	t.Parallel()
	good := every(time.Second)
	must(t, good.Validate(task.Limits{}))
	for field, change := range map[string]func(*Schedule){
		"name":         func(s *Schedule) { s.Name = "a b" },
		"task":         func(s *Schedule) { s.Task = "" },
		"type":         func(s *Schedule) { s.Task = "a|b" },
		"every":        func(s *Schedule) { s.Every = 0 },
		"payload":      func(s *Schedule) { s.Payload = json.RawMessage(`{`) },
		"queue":        func(s *Schedule) { s.Queue = "no way" },
		"timeout":      func(s *Schedule) { s.Timeout = -1 },
		"backoff":      func(s *Schedule) { s.Backoff.Base = 1500 * time.Microsecond }, // it could not be read back
		"backoff_cap":  func(s *Schedule) { s.Backoff.Cap = schedule.MaxDuration + time.Millisecond },
		"max_attempts": func(s *Schedule) { s.MaxAttempts = -1 },
	} {
		s := good
		change(&s)
		err := s.Validate(task.Limits{})
		var own *task.FieldError
		var rule *task.FieldError
		switch {
		case errors.As(err, &own) && own.Field == field, errors.As(err, &rule) && rule.Field == field:
		default:
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestSlotTask_overlap(t *testing.T) {
	t.Parallel()
	for policy, want := range map[schedule.Overlap]task.Overlap{
		schedule.OverlapSkip: task.Skip, schedule.OverlapQueue: task.QueueUp, schedule.OverlapReplace: task.Replace,
	} {
		s := every(time.Second)
		s.Overlap = policy
		if got := s.slotTask(epoch, time.Time{}); got.Overlap != want || got.Key != "schedule:s" || got.KeyLimit != 1 {
			t.Errorf("%s: %+v", policy, got)
		}
	}
	s := every(time.Second)
	if got := s.slotTask(epoch, time.Time{}); got.Key != "" {
		t.Errorf("allow: %+v", got)
	}
}

// A field that is missing in the list would be lost wherever a schedule is written.
func TestFields_areAllOfASchedule(t *testing.T) {
	t.Parallel()
	s := Schedule{}
	listed := map[any]bool{}
	for _, f := range Fields() {
		listed[reflect.ValueOf(f.Of(&s)).UnsafePointer()] = true
	}
	var look func(v reflect.Value, path string)
	look = func(v reflect.Value, path string) {
		for i := range v.NumField() {
			f, at := v.Type().Field(i), v.Field(i)
			switch {
			case f.Name == "Elsewhere": // only the program that declares it reads it
			case !f.IsExported() || listed[at.Addr().UnsafePointer()] && !f.Anonymous && f.Type != reflect.TypeFor[task.Backoff]():
			case f.Anonymous || f.Type == reflect.TypeFor[task.Backoff]():
				look(at, path+f.Name+".")
			default:
				t.Errorf("%s%s is no field that is written", path, f.Name)
			}
		}
	}
	look(reflect.ValueOf(&s).Elem(), "")
}
