package onbeat_test

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/lock"
)

// The rules of docs/rights.md for locks are enough, in a namespace and without one, which is a namespace too.
func TestRights_documentedAreEnoughForLocks(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	for _, ns := range []string{testredis.Namespace(t), ""} {
		t.Run("locks of namespace "+strconv.Quote(ns), func(t *testing.T) {
			t.Parallel()
			rdb := testredis.User(t, admin, lockRights(t, ns), func(o *redis.Options) { o.ClientName = "onbeat" })
			locks(t, rdb, ns, testredis.Namespace(t))
		})
	}
}

// lockRights are the rules that docs/rights.md names for locks: in a namespace; or, for "", without one.
func lockRights(t *testing.T, namespace string) []string {
	t.Helper()
	rules := rightsOf(t, "Locks", namespace)
	if namespace != "" {
		return rules
	}
	text, err := os.ReadFile("docs/rights.md")
	must(t, err)
	_, rest, ok := strings.Cut(string(text), "Without a namespace put `")
	instead, _, _ := strings.Cut(rest, "`")
	if !ok {
		t.Fatal("docs/rights.md has no rules for locks without a namespace")
	}
	rules = slices.DeleteFunc(rules, func(r string) bool { return !strings.HasPrefix(r, "+") })
	return append(strings.Fields(instead), rules...)
}

// locks takes a lock, waits for one, and gives it on.
func locks(t *testing.T, rdb redis.UniversalClient, ns, name string) {
	t.Helper()
	l, err := lock.New(rdb, lock.Options{Namespace: ns, TTL: time.Second})
	must(t, err)
	first, err := l.Acquire(t.Context(), name)
	must(t, err)
	got := make(chan error, 1)
	go func() {
		second, err := l.Acquire(t.Context(), name)
		if err == nil {
			err = second.Release(context.WithoutCancel(t.Context()))
		}
		got <- err
	}()
	time.Sleep(400 * time.Millisecond) // a heartbeat
	must(t, first.Release(t.Context()))
	must(t, <-got)
}
