package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Aged says how old an answer may be. Pages ask again and again: those that take an answer of some seconds ago share what one of them has
// asked of Redis.
type Aged struct {
	Age string `query:"age" doc:"How old the answer may be, such as 2s, at most 10s. Default 0s: it is of now. A page that asks again and again then shares the answer that another has asked for. After a change that this server made it is of now."`
}

const mostAge = 10 * time.Second

type ageKey struct{}

// within returns a context that says how old an answer may be.
func (in *Aged) within(ctx context.Context) (context.Context, error) {
	if in.Age == "" {
		return ctx, nil
	}
	age, err := schedule.ParseDuration(in.Age)
	if err != nil || age < 0 || age > mostAge {
		return nil, &task.FieldError{Field: "age", Value: in.Age, Reason: "not a duration from 0s to 10s", Hint: "for example 2s"}
	}
	return context.WithValue(ctx, ageKey{}, age), nil
}

// sharing is an activity whose answers are shared by those who take an older one.
type sharing struct {
	admin.Activity
	*readings
}

func (s sharing) Status(ctx context.Context) (admin.Status, error) {
	return askOnce(ctx, s.readings, "status", s.Activity.Status)
}

func (s sharing) Counts(ctx context.Context) (admin.Counts, error) {
	return askOnce(ctx, s.readings, "counts", s.Activity.Counts)
}

func (s sharing) Summary(ctx context.Context, since time.Duration) (admin.Summary, error) {
	return askOnce(ctx, s.readings, fmt.Sprint("summary ", since.Round(time.Minute)), func(ctx context.Context) (admin.Summary, error) {
		return s.Activity.Summary(ctx, since)
	})
}

func (s sharing) Beat(ctx context.Context, o admin.BeatQuery) (admin.Beat, error) {
	return askOnce(ctx, s.readings, fmt.Sprintf("beat %d %d %d %q", o.From.UnixMilli(), o.To.UnixMilli(), o.Step, o.Schedules), func(ctx context.Context) (admin.Beat, error) {
		return s.Activity.Beat(ctx, o)
	})
}

// sharingInstances is the same of the instances.
type sharingInstances struct {
	admin.Instances
	*readings
}

func (s sharingInstances) List(ctx context.Context) (admin.InstanceList, error) {
	return askOnce(ctx, s.readings, "instances", s.Instances.List)
}

// readings are the newest answers, by what was asked. Nobody changes what is in them.
type readings struct {
	flights singleflight.Group
	mu      sync.Mutex
	kept    map[string]reading
	wrote   atomic.Int64 // how many requests that may change something this server has served
}

type reading struct {
	value any
	at    time.Time // when it was asked for
	wrote int64
}

// mostReadings bounds the answers that are kept, largestReading what each of them has, and readingTime a question for all who wait for it.
const (
	mostReadings   = 100
	largestReading = 2_000 // slots, sums and lines of a beat; other answers are small
	readingTime    = 10 * time.Second
)

// askOnce has those who ask the same at the same time share one question. Each of them stays until it is answered, also if its client
// leaves: so a question that is at work holds a place among the requests.
func askOnce[T any](ctx context.Context, s *readings, what string, read func(context.Context) (T, error)) (T, error) {
	age, _ := ctx.Value(ageKey{}).(time.Duration)
	if age <= 0 {
		return read(ctx)
	}
	wrote := s.wrote.Load()
	s.mu.Lock()
	had := s.kept[what]
	s.mu.Unlock()
	if v, ok := had.value.(T); ok && had.wrote == wrote && time.Since(had.at) <= age {
		return v, nil
	}
	for again := true; ; again = false {
		own := false
		found, err, _ := s.flights.Do(fmt.Sprint(what, " ", wrote), func() (v any, err error) {
			own = true
			defer func() {
				if bug := recover(); bug != nil { // not all who wait are requests, which answer a panic
					err = fmt.Errorf("panic: %v\n%s", bug, debug.Stack())
				}
			}()
			ctx, done := context.WithTimeout(context.WithoutCancel(ctx), readingTime) // the client of the first caller may leave
			defer done()
			at := time.Now()
			v, err = read(ctx)
			if err == nil {
				s.keep(what, reading{v, at, wrote})
			}
			return v, err
		})
		if again && !own && errors.Is(err, errAudits) { // the turn that did not come was another sender's
			continue
		}
		v, _ := found.(T)
		return v, err
	}
}

// keep keeps an answer for others, unless it is a large one.
func (s *readings) keep(what string, a reading) {
	if b, ok := a.value.(admin.Beat); ok {
		n := len(b.Schedules) + len(b.Terms) + len(b.Sessions)
		for i := range b.Schedules {
			n += len(b.Schedules[i].Slots) + len(b.Schedules[i].Sums)
		}
		if n > largestReading {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.kept, func(_ string, had reading) bool { return time.Since(had.at) > mostAge })
	if s.kept == nil || len(s.kept) >= mostReadings {
		s.kept = map[string]reading{}
	}
	s.kept[what] = a
}
