package onbeat_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

const number = "4111-1111-1111-1111"

func keyOf(id string) task.EncryptionKey {
	return task.EncryptionKey{ID: id, Secret: bytes.Repeat([]byte(id[len(id)-1:]), task.EncryptionKeyBytes)}
}

// seenBy collects what a handler got, by release.
type seenBy struct {
	mu   sync.Mutex
	runs map[string]string // task -> release and payload
}

func (s *seenBy) handler(release string, err error) handlers.TaskHandler {
	return handlers.Func(func(_ context.Context, t *task.Task) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.runs == nil {
			s.runs = map[string]string{}
		}
		s.runs[t.ID] = release + " " + string(t.Payload)
		return err
	})
}

func (s *seenBy) of(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[id]
}

// dump returns all that Redis has of a namespace.
func dump(t *testing.T, rdb *redis.Client, namespace string) string {
	t.Helper()
	var b strings.Builder
	it := rdb.Scan(t.Context(), 0, "*{"+namespace+"}*", 1000).Iterator()
	for it.Next(t.Context()) {
		key := it.Val()
		b.WriteString(key)
		switch rdb.Type(t.Context(), key).Val() {
		case "string":
			b.WriteString(rdb.Get(t.Context(), key).Val())
		case "hash":
			fmt.Fprint(&b, rdb.HGetAll(t.Context(), key).Val())
		case "zset":
			fmt.Fprint(&b, rdb.ZRangeWithScores(t.Context(), key, 0, -1).Val())
		case "stream":
			fmt.Fprint(&b, rdb.XRange(t.Context(), key, "-", "+").Val())
		}
	}
	if b.Len() == 0 {
		t.Fatal("nothing was dumped")
	}
	return b.String()
}

// A rollout in three steps brings two keys and takes the first away again, while a schedule beats and tasks wait.
func TestEncryption_rolloutBringsAndRotatesKeys(t *testing.T) {
	t.Parallel()
	rdb, ns, seen := testredis.Real(t), testredis.Namespace(t), &seenBy{}
	node := func(release string, c task.Encryption) *onbeat.Dispatcher {
		d := dispatcher(t, rdb, onbeat.Config{Namespace: ns, Release: release, Lease: time.Second, Encryption: c})
		if err := errors.Join(d.Handle("pay", seen.handler(release, nil)),
			d.Schedule("beat", schedule.Every(200*time.Millisecond), "pay", map[string]string{"card": number})); err != nil {
			t.Fatal(err)
		}
		return d
	}
	enqueue := func(d *onbeat.Dispatcher, id string, opts ...task.Option) {
		t.Helper()
		if _, err := d.Enqueue(t.Context(), task.New("pay", map[string]string{"card": number, "of": id}, append(opts, task.ID(id))...)); err != nil {
			t.Fatal(err)
		}
	}
	ran := func(id, release string) {
		t.Helper()
		want := release + ` {"card":"` + number + `","of":"` + id + `"}`
		testredis.Eventually(t, patience, func() bool { return seen.of(id) == want }, "%s runs in %s", id, release)
	}
	k1, k2 := keyOf("k1"), keyOf("k2")
	plain := node("v1", task.Encryption{})
	stopPlain := run(t, plain)
	enqueue(plain, "plain")
	ran("plain", "v1")
	first := node("v2", task.Encryption{Keys: []task.EncryptionKey{k1}})
	enqueue(first, "early") // before an instance has the key
	stopFirst := run(t, first)
	stopPlain()
	enqueue(first, "sealed")
	ran("sealed", "v2")
	enqueue(first, "waits", task.In(time.Hour))
	keys := func() map[string]int {
		got, err := first.Schedules().KeysOf(t.Context())
		if err != nil {
			t.Error(err)
		}
		return got
	}
	testredis.Eventually(t, patience, func() bool { return keys()["k1"] == 1 }, "the schedule is encrypted with k1")

	second := node("v3", task.Encryption{Keys: []task.EncryptionKey{k2, k1}})
	stopSecond := run(t, second)
	stopFirst()
	testredis.Eventually(t, patience, func() bool { return keys()["k2"] == 1 }, "and then with k2")
	found, err := second.Admin().Tasks.Get(t.Context(), "waits")
	if err != nil || !strings.Contains(string(found.Payload), number) {
		t.Errorf("what k1 sealed: %s, %v", found.Payload, err)
	}
	if found, err := plain.Admin().Tasks.Get(t.Context(), "waits"); err != nil || found.Payload != nil || !strings.Contains(found.Encrypted, `"k1"`) {
		t.Errorf("without the key: %+v, %v", found, err)
	}
	before, err := second.Schedules().Get(t.Context(), "beat")
	if err != nil || string(before.Schedule.Payload) != `{"card":"`+number+`"}` {
		t.Errorf("%s, %v", before.Schedule.Payload, err)
	}
	stopSecond()
	version, err := second.Queue().SchedulesVersion(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again := node("v3", task.Encryption{Keys: []task.EncryptionKey{k2}})
	stopAgain := run(t, again)
	enqueue(again, "last")
	ran("last", "v3")
	if now, _ := again.Queue().SchedulesVersion(t.Context()); now != version {
		t.Error("declaring the same schedules again changed them")
	}
	stopAgain()
	verdict, err := again.Schedules().Get(t.Context(), "beat")
	if err != nil || !verdict.Anchor.Equal(before.Anchor) {
		t.Errorf("the grid moved from %s to %s, %v", before.Anchor, verdict.Anchor, err)
	}
}

func TestEncryption_redisHasNoPlaintext(t *testing.T) {
	t.Parallel()
	rdb, ns, seen := testredis.Real(t), testredis.Namespace(t), &seenBy{}
	var log bytes.Buffer
	d := dispatcher(t, rdb, onbeat.Config{
		Namespace: ns, Encryption: task.Encryption{Keys: []task.EncryptionKey{keyOf("k1")}}, Secret: map[string][]string{"pay": {"card"}}, Log: zerolog.New(zerolog.SyncWriter(&log)),
	})
	payload := map[string]string{"card": number}
	if err := errors.Join(d.Handle("pay", seen.handler("-", fmt.Errorf("the bank refuses %s", number))),
		d.Schedule("beat", schedule.Every(time.Hour), "pay", payload, task.MaxAttempts(1))); err != nil {
		t.Fatal(err)
	}
	stop := run(t, d)
	if _, err := d.Enqueue(t.Context(), task.New("pay", payload, task.ID("dead"), task.MaxAttempts(1))); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Enqueue(t.Context(), task.New("pay", payload, task.ID("later"), task.In(time.Hour), task.Key("k", 1))); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, patience, func() bool {
		f, err := d.Admin().Tasks.Get(t.Context(), "dead")
		s, err2 := d.Admin().Schedules.Get(t.Context(), "beat")
		return err == nil && err2 == nil && f.State == admin.TaskDead && len(s.RecentRuns) > 0
	}, "both tasks are dead")
	stop()
	if all := dump(t, rdb, ns); strings.Contains(all, "4111-1111") || !strings.Contains(all, "the bank refuses ***") {
		t.Errorf("redis has %s", all)
	}
	if strings.Contains(log.String(), "4111-1111") {
		t.Errorf("logged: %s", &log)
	}
	f, err := d.Admin().Tasks.Get(t.Context(), "dead")
	if err != nil || string(f.Masked().Payload) != `{"card":"***"}` || !strings.Contains(string(f.Payload), number) {
		t.Errorf("%s, %v", f.Payload, err)
	}
	if _, err := d.Admin().Tasks.Retry(t.Context(), "dead", false); err != nil {
		t.Error(err)
	}
	slots, err := d.Admin().Tasks.List(t.Context(), admin.TaskQuery{TaskFilter: admin.TaskFilter{Schedule: "beat", State: admin.TaskDead}})
	if err != nil || len(slots.Items) == 0 {
		t.Fatalf("%+v, %v", slots, err)
	}
	did, err := d.Admin().Tasks.Retry(t.Context(), slots.Items[0].ID, false)
	again, err2 := d.Admin().Tasks.Get(t.Context(), slots.Items[0].ID)
	if errors.Join(err, err2) != nil || did != admin.DueAnew || !strings.Contains(string(again.Payload), number) || string(again.Masked().Payload) != `{"card":"***"}` {
		t.Errorf("%q, %v: %s", did, err, again.Masked().Payload)
	}
	if strings.Contains(dump(t, rdb, ns), "4111-1111") {
		t.Error("retried as its schedule is now, the slot's payload is not encrypted")
	}
}

// A task that does not open waits, and costs no attempt: somebody changed it in Redis, or the instance has another key with the same ID.
// In that second case it runs once an instance has the right key.
func TestEncryption_whatDoesNotOpenWaits(t *testing.T) {
	t.Parallel()
	rdb, ns, seen := testredis.Real(t), testredis.Namespace(t), &seenBy{}
	node := func(release string, key task.EncryptionKey) *onbeat.Dispatcher {
		d := dispatcher(t, rdb, onbeat.Config{Namespace: ns, Release: release, Encryption: task.Encryption{Keys: []task.EncryptionKey{key}}})
		if err := d.Handle("pay", seen.handler(release, nil)); err != nil {
			t.Fatal(err)
		}
		return d
	}
	right, wrong := keyOf("k1"), keyOf("k2")
	wrong.ID = right.ID
	d := node("right", right)
	for _, id := range []string{"flipped", "moved", "whole"} {
		if _, err := d.Enqueue(t.Context(), task.New("pay", id, task.ID(id))); err != nil {
			t.Fatal(err)
		}
	}
	keys := d.Queue().Keys()
	flipped := []byte(rdb.HGet(t.Context(), keys.Tasks, "flipped").Val())
	var box task.Task
	if err := task.Decode(string(flipped), &box); err != nil || box.Sealed == nil {
		t.Fatal(err)
	}
	flipped[bytes.Index(flipped, box.Sealed.Data)] ^= 1
	rdb.HSet(t.Context(), keys.Tasks, "flipped", flipped, "moved", rdb.HGet(t.Context(), keys.Tasks, "whole").Val())
	lane := keys.Due(queue.LaneOf(task.New("pay", nil)))
	waits := func(d *onbeat.Dispatcher, ids ...string) {
		t.Helper()
		for _, id := range ids {
			testredis.Eventually(t, patience, func() bool {
				at, err := rdb.ZScore(t.Context(), lane, id).Result()
				return err == nil && time.UnixMilli(int64(at)).After(time.Now().Add(10*time.Second))
			}, "%s is due again later", id)
			if f, err := d.Admin().Tasks.Get(t.Context(), id); err != nil || f.State != admin.TaskPlanned || f.Attempts != 0 || len(f.Failures) > 0 || seen.of(id) != "" {
				t.Errorf("%s: %+v, %v; it ran with %q", id, f, err, seen.of(id))
			}
		}
	}
	other := node("wrong", wrong)
	stop := run(t, other)
	waits(other, "flipped", "moved", "whole")
	testredis.Eventually(t, patience, func() bool {
		s, err := other.Admin().Activity.Status(t.Context())
		return err == nil && !s.Well && slices.ContainsFunc(s.Trouble, func(x admin.Trouble) bool { return x.Kind == admin.NoKey && x.Name == right.ID })
	}, "the status names the key")
	stop()
	found, err := d.Queue().CountSealed(t.Context(), d.Queue().Seal())
	if err != nil || found.Tasks["k1"] != 3 || found.Closed["k1"] != 2 {
		t.Errorf("with the right key: %+v, %v", found, err)
	}
	found, err = d.Queue().CountSealed(t.Context(), other.Queue().Seal())
	if err != nil || found.Closed["k1"] != 3 {
		t.Errorf("with the wrong one: %+v, %v", found, err)
	}
	rdb.ZAdd(t.Context(), lane, redis.Z{Member: "whole"}, redis.Z{Member: "flipped"}, redis.Z{Member: "moved"}) // as if the minute was over
	run(t, d)
	testredis.Eventually(t, patience, func() bool { return seen.of("whole") == `right "whole"` }, "the task runs with its key")
	waits(d, "flipped", "moved")
}

// A person who can write to Redis without the key, and may look at tasks, sees no secret field by that: neither by another path in the
// record or in the definition, nor by a copy in a namespace of that person.
func TestEncryption_hidesWhatWasSecretWhenItWasSealed(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	config := onbeat.Config{Namespace: testredis.Namespace(t), Encryption: task.Encryption{Keys: []task.EncryptionKey{keyOf("k1")}}}
	d, ctx := dispatcher(t, rdb, config), t.Context()
	payload := map[string]string{"card": number}
	s := producer.Schedule{Name: "beat", Rule: schedule.Every(time.Hour), Task: "pay", Payload: []byte(`{"card":"` + number + `"}`), Secret: []string{"card"}}
	if _, err := d.Enqueue(ctx, task.New("pay", payload, task.ID("x"), task.Secret("card"), task.In(time.Hour))); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Admin().Schedules.Apply(ctx, s); err != nil {
		t.Fatal(err)
	}
	keys := d.Queue().Keys()
	record, definition := rdb.HGet(ctx, keys.Tasks, "x").Val(), rdb.HGet(ctx, keys.Schedules, "beat").Val()
	if strings.Count(record, "card") != 1 || strings.Count(definition, "card") != 1 {
		t.Fatalf("the paths are elsewhere: %q, %q", record, definition)
	}
	rdb.HSet(ctx, keys.Tasks, "x", strings.Replace(record, "card", "cart", 1))
	rdb.HSet(ctx, keys.Schedules, "beat", strings.Replace(definition, "card", "cart", 1))
	if f, err := d.Admin().Tasks.Get(ctx, "x"); err != nil || string(f.Masked().Payload) != `{"card":"***"}` {
		t.Errorf("the task shows %s, %v", f.Masked().Payload, err)
	}
	if f, err := d.Admin().Schedules.Get(ctx, "beat"); err != nil || strings.Contains(string(f.Masked().Payload), number) || len(f.Payload) == 0 {
		t.Errorf("the schedule shows %s, %v", f.Masked().Payload, err)
	}
	config.Namespace = testredis.Namespace(t)
	other := dispatcher(t, rdb, config)
	rdb.HSet(ctx, other.Queue().Keys().Tasks, "x", record)
	rdb.ZAdd(ctx, other.Queue().Keys().Due(queue.LaneOf(task.New("pay", nil))), redis.Z{Score: 4e12, Member: "x"})
	if f, err := other.Admin().Tasks.Get(ctx, "x"); err != nil || f.Payload != nil || f.Encrypted == "" {
		t.Errorf("in another namespace: %+v, %v", f, err)
	}
}
