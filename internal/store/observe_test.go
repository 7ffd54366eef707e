package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// told notes what an observer is told.
type told struct {
	mu      sync.Mutex
	scripts []string
	errs    []error
	suspect int
}

func (o *told) Called(script string, took time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if took <= 0 {
		script += ": no time"
	}
	o.scripts, o.errs = append(o.scripts, script), append(o.errs, err)
}

func (o *told) PrimarySuspected() { o.suspect++ }

var observedScript = store.NewScript("observed", "if ARGV[1] == '' then return redis.error_reply('OOM full') end return ARGV[1]").Claiming()

func TestObserved_tellsOfScriptsAlone(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		o := &told{}
		seen := store.Observed(rdb, o)
		for _, arg := range []string{"a", ""} { // the first is not known to Redis by its hash, perhaps
			_, _ = observedScript.Run(t.Context(), seen, nil, []any{arg})
		}
		if _, err := store.Now(t.Context(), seen, "key"); err != nil {
			t.Error(err)
		}
		if len(o.scripts) != 2 || o.scripts[0] != "observed" || o.scripts[1] != "observed" || o.errs[0] != nil || !errors.Is(o.errs[1], task.ErrFull) {
			t.Errorf("%q, %v", o.scripts, o.errs)
		}
	})
}

// suspecting fails scripts with what it holds.
type suspecting struct {
	redis.UniversalClient
	err error
}

func (s *suspecting) Process(ctx context.Context, cmd redis.Cmder) error {
	if s.err == nil {
		return s.UniversalClient.Process(ctx, cmd)
	}
	cmd.SetErr(s.err)
	return s.err
}

func TestObserved_aSuspicionIsToldOnce(t *testing.T) {
	t.Parallel()
	primary, o := &suspecting{UniversalClient: testredis.Mini(t).Dialed(t)}, &told{}
	seen := store.Observed(primary, o)
	for _, err := range []error{nil, store.ErrSuspect, store.ErrSuspect, task.ErrUnreachable, store.ErrSuspect, nil, store.ErrSuspect} {
		primary.err = err
		_, _ = observedScript.Run(t.Context(), seen, nil, []any{"a"})
	}
	if o.suspect != 2 {
		t.Errorf("%d suspicions, want 2", o.suspect)
	}
}

func TestObserved_isStrictIfWhatItWrapsIs(t *testing.T) {
	t.Parallel()
	rdb := testredis.Mini(t).Dialed(t)
	strict := store.Observed(store.Durable(rdb, store.Durability{Replicas: 1, Strict: true}), &told{})
	if !store.IsStrict(strict) || store.IsStrict(store.Observed(rdb, &told{})) {
		t.Error("the wrapper hides whether the client is strict")
	}
	if store.Plain(strict) != redis.UniversalClient(rdb) {
		t.Error("the plain client is another one")
	}
}
