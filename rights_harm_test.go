package onbeat_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
)

// A producer may not do by hand what it may not do through onbeat: Redis refuses it every command on every key that
// enqueueing does not use. The test covers new keys too.
func TestRights_aProducerTouchesNoScheduleByHand(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	ns := testredis.Namespace(t)
	rdb := testredis.User(t, admin, rightsOf(t, "A producer", ns))
	k := queue.Partition{Namespace: ns}.Keys()
	used := []string{k.Tasks, k.Lanes, k.Meta, k.Watch, k.Wake}
	fields, looked := reflect.ValueOf(k), 0
	for i := range fields.NumField() {
		if !fields.Type().Field(i).IsExported() || slices.Contains(used, fields.Field(i).String()) {
			continue
		}
		looked++
		noHarm(t, rdb, fields.Field(i).String())
	}
	if looked < 15 {
		t.Errorf("only %d keys were looked at", looked)
	}
	noHarm(t, rdb, k.Running(1))
	noHarm(t, rdb, queue.Partition{Namespace: ns + "x"}.Keys().Tasks)
	for _, channel := range []string{k.Schedules, k.Wake + "x", queue.Partition{Namespace: ns + "x"}.Keys().Wake} {
		refusesIt(t, rdb, "PUBLISH", channel, "x")
	}
}

// The page of rights names each number of onbeat that a producer may change by hand.
func TestRights_aProducerWritesMetaByHand(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	ns := testredis.Namespace(t)
	rdb := testredis.User(t, admin, rightsOf(t, "A producer", ns))
	page, err := os.ReadFile("docs/rights.md")
	must(t, err)
	for _, field := range []string{"gen", "order", "epoch", "clock", "beat", "declared", "fence"} {
		must(t, rdb.HSet(t.Context(), queue.Partition{Namespace: ns}.Keys().Meta, field, "1").Err())
		if !strings.Contains(string(page), "`"+field+"`") {
			t.Errorf("docs/rights.md does not name %s", field)
		}
	}
}

// A place among the watchers is one of the things by which a leader is judged.
func TestRights_aProducerWritesWatchByHand(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	ns := testredis.Namespace(t)
	rdb := testredis.User(t, admin, rightsOf(t, "A producer", ns))
	must(t, rdb.ZAdd(t.Context(), queue.Partition{Namespace: ns}.Keys().Watch, redis.Z{Score: 1, Member: "leader"}).Err())
	page, err := os.ReadFile("docs/rights.md")
	must(t, err)
	if !strings.Contains(string(page), "in `watch`") {
		t.Error("docs/rights.md does not say that a producer can have a leader suspected")
	}
}

// noHarm tries commands that would change or read a key, as redis-cli would.
func noHarm(t *testing.T, rdb *redis.Client, key string) {
	t.Helper()
	for _, args := range [][]any{
		{"HDEL", key, "x"}, {"HSET", key, "x", "y"}, {"HGET", key, "x"}, {"DEL", key}, {"SET", key, "x"}, {"ZADD", key, 1, "x"}, {"ZREM", key, "x"},
		{"EVAL", "return redis.call('DEL', KEYS[1])", 1, key}, {"EVAL", "return redis.call('DEL', ARGV[1])", 0, key},
	} {
		refusesIt(t, rdb, args...)
	}
}

func refusesIt(t *testing.T, rdb *redis.Client, args ...any) {
	t.Helper()
	err := rdb.Do(t.Context(), args...).Err()
	if !store.LacksRight(store.Classify(err)) {
		t.Errorf("%v: %v, want NOPERM", args, err)
	}
}

// A reader has no command that writes, and a script of its own cannot write either.
func TestRights_aReaderWritesNothing(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	ns := testredis.Namespace(t)
	rules := rightsOf(t, "A reader", ns)
	info, err := admin.Command(t.Context()).Result()
	must(t, err)
	for _, rule := range rules {
		name, isCommand := strings.CutPrefix(rule, "+")
		if !isCommand {
			continue
		}
		name, _, _ = strings.Cut(name, "|")
		if c := info[name]; c == nil || slices.Contains(c.Flags, "write") {
			t.Errorf("%s: %+v", rule, c)
		}
	}
	rdb := testredis.User(t, admin, rules)
	k := queue.Partition{Namespace: ns}.Keys()
	refusesIt(t, rdb, "HDEL", k.Schedules, "x")
	err = rdb.Eval(t.Context(), "return redis.call('HDEL', KEYS[1], 'x')", []string{k.Schedules}).Err()
	if !store.LacksRight(store.Classify(err)) {
		t.Errorf("by a script: %v", err)
	}
}
