package onbeat_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// hourOf is a schedule with a number in its payload.
func hourOf(name, payload string) producer.Schedule {
	return producer.Schedule{Name: name, Rule: schedule.Every(time.Hour), Task: "pay", Payload: json.RawMessage(`"` + payload + `"`)}
}

// Revisions and deleted schedules are encrypted too. Only a caller with the key makes an older revision the current one, and encrypts it
// with the first key of now; a deleted schedule is restored as it was, still encrypted.
func TestEncryption_ofRevisionsAndDeletedSchedules(t *testing.T) {
	t.Parallel()
	rdb, ns, ctx := testredis.Real(t), testredis.Namespace(t), t.Context()
	with := func(keys ...task.EncryptionKey) *producer.Schedules {
		return dispatcher(t, rdb, onbeat.Config{Namespace: ns, Encryption: task.Encryption{Keys: keys}}).Schedules()
	}
	k1, k2 := keyOf("k1"), keyOf("k2")
	old, both, none := with(k1), with(k2, k1), with()
	apply := func(s producer.Schedule) {
		t.Helper()
		if did, err := old.Apply(ctx, s); err != nil {
			t.Fatal(did, err)
		}
	}
	clear := func(when string) {
		t.Helper()
		if all := dump(t, rdb, ns); strings.Contains(all, "4111-1111") {
			t.Fatalf("%s: Redis has %s", when, all)
		}
	}
	apply(hourOf("s", number))
	first, err := old.Get(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	apply(hourOf("s", "2-"+number))
	if did, err := old.Apply(ctx, hourOf("s", "2-"+number)); err != nil || did != producer.Unchanged {
		t.Errorf("the same again: %s, %v", did, err)
	}
	apply(hourOf("gone", number))
	if err := old.Delete(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	clear("after changes and a deletion")

	was := dump(t, rdb, ns)
	now, err := none.Get(ctx, "s")
	if err != nil || now.Schedule.Payload != nil || !strings.Contains(now.Schedule.Unopened(), `"k1"`) {
		t.Errorf("without the key: %+v, %v", now, err)
	}
	for what, do := range map[string]func() error{
		"revert":  func() error { _, err := none.Revert(ctx, "s", first.Revision); return err },
		"apply":   func() error { _, err := none.Apply(ctx, hourOf("s", "plain")); return err },
		"applyIf": func() error { _, err := none.ApplyIf(ctx, hourOf("s", "plain"), now.Revision); return err },
		"plan":    func() error { _, err := none.Plan(ctx, hourOf("s", "plain")); return err },
	} {
		if err := do(); !errors.Is(err, task.ErrNoKey) || !strings.Contains(err.Error(), `"k1"`) {
			t.Errorf("%s without the key: %v", what, err)
		}
	}
	if dump(t, rdb, ns) != was {
		t.Error("what was refused wrote something")
	}
	if err := none.Restore(ctx, "gone"); err != nil { // as it was, and still encrypted
		t.Error(err)
	}
	clear("restored without the key")
	if list, _, err := none.Revisions(ctx, "s", 0, ""); err != nil || len(list) != 2 || list[0].Schedule.Payload != nil || len(list[0].Changes) != 0 {
		t.Errorf("revisions without the key: %+v, %v", list, err)
	}

	if did, err := both.Revert(ctx, "s", first.Revision); err != nil || did != producer.Changed {
		t.Errorf("%s, %v", did, err)
	}
	if err := errors.Join(both.Delete(ctx, "gone"), both.Restore(ctx, "gone")); err != nil {
		t.Error(err)
	}
	clear("after it came back")
	for _, name := range []string{"s", "gone"} {
		if got, err := both.Get(ctx, name); err != nil || string(got.Schedule.Payload) != `"`+number+`"` {
			t.Errorf("%s: %s, %v", name, got.Schedule.Payload, err)
		}
	}
	if keys, err := both.KeysOf(ctx); err != nil || keys["k2"] != 2 {
		t.Errorf("%v, %v", keys, err)
	}
	list, _, err := both.Revisions(ctx, "s", 0, "")
	if err != nil || len(list) != 3 || list[0].What != "reverted" || string(list[1].Schedule.Payload) != `"2-`+number+`"` || len(list[0].Changes) != 1 {
		t.Errorf("%+v, %v", list, err)
	}

	revisions := dispatcher(t, rdb, onbeat.Config{Namespace: ns}).Queue().Keys().Revisions
	damaged := strings.ReplaceAll(rdb.HGet(ctx, revisions, "s").Val(), `"data":"`, `"data":"AAAA`)
	if err := rdb.HSet(ctx, revisions, "s", damaged).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := both.Revert(ctx, "s", first.Revision); !errors.Is(err, task.ErrDamaged) {
		t.Errorf("to what does not open: %v", err)
	}
}

// The leader encrypts what is stored with the key of today. That says nothing new: a caller that holds the number of the schedule may
// still use it, and there is no new revision. Nothing is written at the next start.
func TestEncryption_anewIsNoRevision(t *testing.T) {
	t.Parallel()
	rdb, ns, ctx := testredis.Real(t), testredis.Namespace(t), t.Context()
	var ran atomic.Int64
	node := func(keys ...task.EncryptionKey) *onbeat.Dispatcher {
		d := dispatcher(t, rdb, onbeat.Config{Namespace: ns, Lease: time.Second, Encryption: task.Encryption{Keys: keys}})
		count := handlers.Func(func(context.Context, *task.Task) error { ran.Add(1); return nil })
		if err := errors.Join(d.Handle("pay", count), d.Schedule("declared", schedule.Every(time.Hour), "pay", number)); err != nil {
			t.Fatal(err)
		}
		return d
	}
	k1, k2 := keyOf("k1"), keyOf("k2")
	plain := node()
	stop := run(t, plain)
	if _, err := plain.Schedules().Apply(ctx, hourOf("applied", number)); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, patience, func() bool {
		left, err := rdb.HLen(ctx, plain.Queue().Keys().Tasks).Result()
		return err == nil && ran.Load() >= 2 && left == 0
	}, "both ran, and no task that was made without keys is left")
	stop()
	seen := map[string]int64{}
	for _, name := range []string{"declared", "applied"} {
		s, err := plain.Schedules().Get(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		seen[name] = s.Revision
	}
	for i, keys := range [][]task.EncryptionKey{{k1}, {k2, k1}, {k2, k1}, {k2}} {
		d := node(keys...)
		before, err := d.Queue().SchedulesVersion(ctx)
		if err != nil {
			t.Fatal(err)
		}
		stop := run(t, d)
		testredis.Eventually(t, patience, func() bool {
			n, err := d.Schedules().KeysOf(ctx)
			return err == nil && n[keys[0].ID] == 2 && d.Unready() == nil
		}, "both are encrypted with %s", keys[0].ID)
		stop()
		if after, _ := d.Queue().SchedulesVersion(ctx); i >= 2 && after != before {
			t.Errorf("start %d wrote schedules", i)
		}
		for _, name := range []string{"declared", "applied"} {
			s, err := d.Schedules().Get(ctx, name)
			list, _, err2 := d.Schedules().Revisions(ctx, name, 0, "")
			if err = errors.Join(err, err2); err != nil || len(list) != 1 || list[0].What != "made" || list[0].Number != s.Revision || string(list[0].Schedule.Payload) != `"`+number+`"` {
				t.Errorf("start %d: %s: %+v, %v", i, name, list, err)
			}
			if seen[name] != s.Revision {
				t.Errorf("start %d: %s was at %d, and is at %d", i, name, seen[name], s.Revision)
			}
		}
		if all := dump(t, rdb, ns); strings.Contains(all, "4111-1111") {
			t.Errorf("start %d: Redis has %s", i, all)
		}
	}
	last := node(k2)
	if _, err := last.Schedules().ApplyIf(ctx, hourOf("applied", "new"), seen["applied"]); err != nil {
		t.Errorf("the number of before the keys: %v", err)
	}
}
