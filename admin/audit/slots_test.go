package audit_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// paused writes a history in which schedules were paused for a time, and then deleted.
func (h *house) paused(every, long time.Duration, now time.Time, names ...string) {
	h.Helper()
	rule, err := json.Marshal(schedule.Every(every))
	if err != nil {
		h.Fatal(err)
	}
	for _, name := range names {
		for _, note := range []string{
			history.Range(name, now.Add(-long), now, history.Paused, 0, ""),
			history.Range(name, now.Add(-long), now, history.Was, 0, string(rule)),
		} {
			err := h.rdb.XAdd(h.Context(), &redis.XAddArgs{Stream: "onbeat:{" + h.ns + "}:history", Values: []string{"slots", note}}).Err()
			if err != nil {
				h.Fatal(err)
			}
		}
	}
}

// More slots than are judged in one pass over the history are summed up like few.
func TestSlots_sumsUpMillions(t *testing.T) {
	t.Parallel()
	h, now := newHouse(t, testredis.Client(t)), time.Now()
	h.paused(100*time.Millisecond, 30*time.Hour, now, "a", "b", "c")
	h.paused(time.Hour, 30*time.Hour, now, "d")
	span := audit.Span{From: now.Add(-30 * time.Hour), To: now, Step: 10 * time.Minute}
	judged, err := h.auditor.Slots(t.Context(), span)
	lines := judged.Lines
	if err != nil || len(lines) != 4 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	for _, l := range lines[:3] {
		sum := int64(0)
		for _, s := range l.Sums {
			sum += s.Counts[audit.Paused]
		}
		if len(l.Slots) != 0 || len(l.Sums) < 180 || len(l.Sums) > 181 || sum < 1_079_990 || sum > 1_080_001 {
			t.Errorf("%s: %d slots in %d sums", l.Schedule, sum, len(l.Sums))
		}
	}
	if d := lines[3]; d.Schedule != "d" || len(d.Sums) != 0 || len(d.Slots) < 29 {
		t.Errorf("an hour between slots: %+v", d)
	}
}

func TestSlots_refusesMoreThanItSumsUp(t *testing.T) {
	t.Parallel()
	h, now := newHouse(t, testredis.Client(t)), time.Now()
	h.paused(10*time.Millisecond, 12*time.Hour, now, "fast")
	span := audit.Span{From: now.Add(-12 * time.Hour), To: now, Step: 10 * time.Minute}
	var f *task.FieldError
	if _, err := h.auditor.Slots(t.Context(), span); !errors.As(err, &f) || f.Field != "from" || f.Hint == "" {
		t.Errorf("4.3 million slots: %v", err)
	}
	span.From, span.Step = now.Add(-time.Hour), time.Second
	if _, err := h.auditor.Slots(t.Context(), span); !errors.As(err, &f) || f.Field != "step" || f.Hint == "" {
		t.Errorf("3,600 steps: %v", err)
	}
}
