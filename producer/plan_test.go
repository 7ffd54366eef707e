package producer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// A plan says what Apply then does, and changes nothing.
func TestPlan_saysWhatApplyDoes(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		w := newWorld(t, rdb)
		ctx := context.Background()
		other := every(2 * time.Hour)
		other.Payload = json.RawMessage(`{"a":1}`)
		for _, want := range []Schedule{every(time.Hour), every(time.Hour), other, other} {
			before, err := w.List(ctx)
			must(t, err)
			plan, err := w.Plan(ctx, want)
			must(t, err)
			after, err := w.List(ctx)
			must(t, err)
			if len(before) != len(after) || len(before) > 0 && !same(&before[0].Schedule, &after[0].Schedule) {
				t.Errorf("planning changed %+v to %+v", before, after)
			}
			did, err := w.Apply(ctx, want)
			must(t, err)
			if plan.Result != did || len(plan.Changes) > 0 != (did == Changed) {
				t.Errorf("planned %+v, did %s", plan, did)
			}
		}
		bad := every(0)
		if _, err := w.Plan(ctx, bad); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("a bad schedule: %v", err)
		}
	})
}

func TestChangesOf(t *testing.T) {
	t.Parallel()
	base := Schedule{Name: "s", Rule: schedule.Rule{Cron: "0 2 * * *"}, Task: "http", Payload: json.RawMessage(`{"url":"http://h/?a=1&b=2","n":5}`)}
	for _, c := range []struct {
		change func(*Schedule)
		want   string
	}{
		{func(*Schedule) {}, "[]"},
		{func(s *Schedule) { s.Cron, s.Every = "", time.Hour }, "[{cron 0 2 * * * } {every  1h}]"},
		{func(s *Schedule) { s.Timeout = 90 * time.Second }, "[{timeout  1m30s}]"},
		{func(s *Schedule) { s.Backoff.Cap, s.MaxAttempts = time.Minute, 4 }, "[{backoff_cap  1m} {max_attempts  4}]"},
		{func(s *Schedule) { s.Priority, s.DST.Gap = task.High, schedule.DSTGapSkip }, "[{dst.gap  skip} {priority  high}]"},
		{func(s *Schedule) { s.Payload = json.RawMessage(`{"url":"http://h/?a=1&b=3","n":"5"}`) },
			`[{payload.n 5 "5"} {payload.url "http://h/?a=1&b=2" "http://h/?a=1&b=3"}]`},
		{func(s *Schedule) { s.Payload = json.RawMessage(`{"n":5,"url":"http://h/?a=1&b=2"}`) },
			`[{payload {"url":"http://h/?a=1&b=2","n":5} {"n":5,"url":"http://h/?a=1&b=2"}}]`},
		{func(s *Schedule) {
			s.Payload = json.RawMessage(`{"url":"http://h/?a=1&b=2","n":5,"a.b":{"timeout_ms":[1, 2]}}`)
		},
			`[{payload."a.b".timeout_ms  [1,2]}]`},
		{func(s *Schedule) { s.Payload = nil }, `[{payload.n 5 } {payload.url "http://h/?a=1&b=2" }]`},
	} {
		want := base
		want.Payload = slices.Clone(base.Payload)
		c.change(&want)
		got, err := changesOf(&base, &want)
		must(t, err)
		if fmt.Sprint(got) != c.want {
			t.Errorf("got  %v\nwant %s", got, c.want)
		}
	}
}

// A payload that is large is compared as a whole: value by value it would take a hundred times its bytes.
func TestChangesOf_comparesALargePayloadAsAWhole(t *testing.T) {
	t.Parallel()
	large := func(last string) *Schedule {
		return &Schedule{Name: "s", Payload: json.RawMessage(`{"a":"` + strings.Repeat("x", longestFlat) + `","b":` + last + `}`)}
	}
	changed, err := changesOf(large("1"), large("2"))
	must(t, err)
	if len(changed) != 1 || changed[0].Field != "payload" {
		t.Errorf("%d changes", len(changed))
	}
	if none, err := changesOf(large("1"), large("1")); len(none) != 0 || err != nil {
		t.Errorf("%d changes, %v", len(none), err)
	}
}

// A secret field is hidden however it is named.
func TestMaskChanges_hidesWhateverTheName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"card", "'c'", "`card`", `"card"`, "a.b"} {
		payload, err := json.Marshal(map[string]any{"a": map[string]string{name: "4111", "other": "shown"}})
		must(t, err)
		changes, err := changesOf(&Schedule{Name: "s"}, &Schedule{Name: "s", Payload: payload})
		must(t, err)
		masked := fmt.Sprint(MaskChanges(changes, []string{"a." + strings.ReplaceAll(name, ".", `\.`)}))
		if strings.Contains(masked, "4111") || !strings.Contains(masked, "shown") {
			t.Errorf("%q: %s", name, masked)
		}
	}
}
