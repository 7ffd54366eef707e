package client_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/api"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// A stream that ends is taken up again behind the last event.
func TestFollow_losesNoEventBetweenStreams(t *testing.T) {
	t.Parallel()
	h := newHouse(t, api.Config{})
	c, ctx := h.client(t, ""), t.Context()
	apply := func(name string) {
		_, err := h.direct.Schedules.Apply(ctx, producer.Schedule{Name: name, Rule: schedule.Every(time.Hour), Task: "t"})
		must(t, err)
	}
	apply("0")
	var streams atomic.Int32
	h.put(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Header.Get("Accept") == "text/event-stream" {
			streams.Add(1)
			ended, end := context.WithTimeout(r.Context(), 300*time.Millisecond) // a proxy that cuts long replies off
			defer end()
			r = r.WithContext(ended)
		}
		next.ServeHTTP(w, r)
	})
	go func() {
		for i := 1; i <= 20; i++ {
			time.Sleep(100 * time.Millisecond)
			_, _ = h.direct.Schedules.Apply(ctx, producer.Schedule{Name: fmt.Sprint(i), Rule: schedule.Every(time.Hour), Task: "t"})
		}
	}()
	seen, stop := 0, errors.New("stop")
	err := c.Activity.Follow(ctx, "", func(e admin.Event) error {
		if seen++; e.Fields["schedule"] != fmt.Sprint(seen) {
			t.Errorf("event %d is of %s", seen, e.Fields["schedule"])
		}
		if seen == 20 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || streams.Load() < 2 {
		t.Errorf("%v after %d events in %d streams", err, seen, streams.Load())
	}
	h.put(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(http.StatusBadGateway) })
	if err := c.Activity.Follow(ctx, "0", func(admin.Event) error { return nil }); !errors.Is(err, task.ErrUnreachable) {
		t.Errorf("%v", err)
	}
}

// The same in a namespace that is split: events of several partitions come at the same moment, and each comes once.
func TestFollow_losesNoEventOfAPartition(t *testing.T) {
	t.Parallel()
	const some, many = 30, 300
	h := newHouseOf(t, 5, api.Config{})
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	apply := func(i int) {
		if _, err := h.direct.Schedules.Apply(ctx, producer.Schedule{Name: fmt.Sprint(i), Rule: schedule.Every(time.Hour), Task: "t"}); err != nil {
			t.Error(err)
		}
	}
	for i := range some {
		apply(i)
	}
	var streams atomic.Int32
	h.put(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Header.Get("Accept") == "text/event-stream" {
			ended, end := context.WithTimeout(r.Context(), time.Duration(20+streams.Add(1)*37%200)*time.Millisecond)
			defer end()
			r = r.WithContext(ended)
		}
		next.ServeHTTP(w, r)
	})
	begin, adding := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(adding)
		<-begin
		for i := some; i < many; i++ {
			apply(i)
			if i%10 == 0 {
				time.Sleep(20 * time.Millisecond)
			}
		}
	}()
	follow := func(after string, want map[string]int) {
		seen, enough := map[string]int{}, errors.New("enough")
		err := h.client(t, "").Activity.Follow(ctx, after, func(e admin.Event) error {
			if seen[e.Fields["schedule"]]++; len(seen) == len(want) {
				return enough
			}
			return nil
		})
		if !errors.Is(err, enough) || !maps.Equal(seen, want) {
			t.Errorf("after %q: %d of %d events: %v, %v", after, len(seen), len(want), err, seen)
		}
	}
	all, rest := map[string]int{}, map[string]int{}
	for i := range many {
		if all[fmt.Sprint(i)] = 1; i >= some {
			rest[fmt.Sprint(i)] = 1
		}
	}
	last, err := h.direct.Activity.Events(ctx, admin.EventQuery{Limit: 1})
	must(t, err)
	close(begin)
	follow(last.Items[0].Cursor, rest)
	<-adding
	follow("0", all)
	if streams.Load() < 5 {
		t.Errorf("%d streams", streams.Load())
	}
	for _, bad := range []string{"1-1@6", "1-1@0", "1-1,1-1", "x"} {
		if err := h.client(t, "").Activity.Follow(ctx, bad, nil); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := newHouse(t, api.Config{}).client(t, "").Activity.Follow(ctx, "1-1@2", nil); !errors.Is(err, task.ErrInvalid) {
		t.Errorf("a partition of a namespace that is not split: %v", err)
	}
}
