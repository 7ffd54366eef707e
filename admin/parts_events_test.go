package admin_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

var errEnough = errors.New("enough")

// A caller that follows and comes back again and again gets each event once, and those that it missed in order.
func TestJoin_followsFromWhereItLeft(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	a, _ := partsOn(t, testredis.Namespace(t), rdb, rdb, rdb)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	add := func(from, to int) {
		for i := from; i < to; i++ {
			if _, err := a.Schedules.Apply(ctx, producer.Schedule{Name: fmt.Sprint("s", i), Rule: schedule.Every(time.Hour), Task: "job"}); err != nil {
				t.Error(err)
			}
		}
	}
	add(0, 30)
	missed, err := a.Activity.Events(ctx, admin.EventQuery{})
	if err != nil || len(missed.Items) != 30 {
		t.Fatal(len(missed.Items), err)
	}
	adding := make(chan struct{})
	go func() {
		defer close(adding)
		add(30, 100)
	}()
	after, seen := "0", map[string]int{}
	for count := 0; count < 100; {
		left := 1 + count%7
		err := a.Activity.Follow(ctx, after, func(e admin.Event) error {
			if count < 30 && e.ID != missed.Items[count].ID {
				t.Errorf("event %d is %s, want %s", count, e.ID, missed.Items[count].ID)
			}
			after = e.Cursor
			seen[e.Fields["schedule"]]++
			count++
			if left--; left == 0 || count == 100 {
				return errEnough
			}
			return nil
		})
		if !errors.Is(err, errEnough) {
			t.Fatalf("after %d: %v", count, err)
		}
	}
	<-adding
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s came %d times", name, n)
		}
	}
	if len(seen) != 100 {
		t.Errorf("%d events", len(seen))
	}
}

// While a partition hangs, a caller that follows gets the events of the others, and later those of the partition, each event once.
func TestJoin_followsWhileAPartitionHangs(t *testing.T) {
	t.Parallel()
	first, second := testredis.Private(t), testredis.Private(t)
	a, _ := partsOn(t, testredis.Namespace(t), first.Client(), second.Client())
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	apply := func(name string) error {
		_, err := a.Schedules.Apply(ctx, producer.Schedule{Name: name, Rule: schedule.Every(time.Hour), Task: "job"})
		return err
	}
	var here, there []string // by partition
	for i := 0; len(here) < 20 || len(there) < 20; i++ {
		name := fmt.Sprint("s", i)
		if err := apply(name); err != nil {
			t.Fatal(err)
		}
		if (split.Map{Partitions: 2}).Of(name) == 1 {
			here = append(here, name)
		} else {
			there = append(there, name)
		}
	}
	heard := make(chan string, 1000)
	ended := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		after := ""
		list, err := a.Activity.Events(ctx, admin.EventQuery{Limit: 1})
		if err == nil {
			after = list.Items[0].Cursor
		}
		close(began)
		for ; err == nil || errors.Is(err, task.ErrUnreachable); time.Sleep(100 * time.Millisecond) {
			err = a.Activity.Follow(ctx, after, func(e admin.Event) error {
				after = e.Cursor
				heard <- e.Fields["schedule"]
				return nil
			})
			if ctx.Err() != nil {
				break
			}
		}
		ended <- err
	}()
	<-began
	expect := func(names []string) {
		t.Helper()
		for i, want := range names {
			select {
			case got := <-heard:
				if got != want {
					t.Fatalf("event %d is of %s, want %s", i, got, want)
				}
			case <-time.After(40 * time.Second):
				t.Fatalf("no event of %s", want)
			}
		}
	}
	pause := func(names []string) {
		t.Helper()
		for _, name := range names {
			if _, err := a.Schedules.Pause(ctx, name, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	second.Pause()
	pause(here[:10])
	expect(here[:10])
	second.Resume()
	pause(there[:20])
	expect(there[:20])
	pause(here[10:20])
	expect(here[10:20])
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
