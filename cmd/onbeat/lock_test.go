package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/lock"
)

// holds takes a lock, beside the program, until the test ends.
func (s *shell) holds(name string) *lock.Lock {
	s.Helper()
	h, err := lock.TryAcquire(context.Background(), s.rdb, name, lock.Options{Namespace: s.ns})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = h.Release(context.Background()) })
	return h
}

func (s *shell) lockKey(name string) string { return "onbeat:{" + s.ns + "|" + name + "}:lock" }

// free checks that no process has the lock.
func (s *shell) free(name string) {
	s.Helper()
	if n := s.rdb.Exists(s.Context(), s.lockKey(name)).Val(); n != 0 {
		s.Errorf("lock %s is still there", name)
	}
}

func TestLockRun_runsTheCommandAndEndsLikeIt(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	r := s.run("from stdin", "lock", "run", "job", "--", "sh", "-c", `cat; echo " $ONBEAT_LOCK_NAME ${#ONBEAT_LOCK_FENCE} $1"; exit 7`, "sh", "--nonblock")
	if r.code != 7 || r.out != "from stdin job 16 --nonblock\n" || r.err != "" {
		t.Errorf("exit %d, %q, %q", r.code, r.out, r.err)
	}
	if r := s.run("", "lock", "run", "job", "sh", "-c", "kill -9 $$"); r.code != 128+9 || r.err != "" {
		t.Errorf("killed: exit %d, %q", r.code, r.err)
	}
	s.free("job")
}

func TestLockRun_hasTheExitCodesOfFlock(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.holds("job")
	for _, c := range []struct {
		code int
		say  string
		args string
	}{
		{1, "", "--nonblock job -- echo ran"},
		{1, "", "--nb job -- echo ran"},
		{1, "", "-w 0 job -- echo ran"},
		{1, "", "-w 0.3 job -- echo ran"},
		{42, "", "-E 42 --wait 300ms job -- echo ran"},
		{0, "", "-E 0 --nonblock job -- echo ran"},
		{1, "held by another", "--verbose --nonblock job -- echo ran"},
		{64, "conflict-exit-code", "-E 256 job -- echo ran"},
		{64, "wait", "-w soon job -- echo ran"},
		{64, "ttl", "--ttl 1ms job -- echo ran"},
		{64, "ttl", "--ttl 0 job -- echo ran"},
		{64, "lock", "no{name} -- echo ran"},
		{64, "no command", "job"},
		{64, "no command", "job --"},
		{64, "unknown flag --nonblok", "job --nonblok -- true"},
		{69, "no-such-program", "other -- no-such-program"},
		{69, "no-such-program", "--at-least 1m other -- no-such-program"}, // the lock stays free for another machine
		{75, "127.0.0.1:1", "--redis redis://127.0.0.1:1/0?max_retries=-1 -w 0.3 job -- echo ran"},
		{2, "unknown flag", "--shared job -- echo ran"}, // as everywhere in onbeat
	} {
		args := append([]string{"lock", "run"}, strings.Fields(c.args)...)
		r := s.run("", args...)
		if r.code != c.code || r.out != "" || !strings.Contains(r.err, c.say) || c.say == "" && r.err != "" {
			t.Errorf("%s: exit %d, want %d: %q %q", c.args, r.code, c.code, r.out, r.err)
		}
	}
	s.free("other")
}

func TestLockRun_needsNoNamespace(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	name := s.ns + "-job"
	r := runWith(t.Context(), testEnv("ONBEAT_REDIS_URL", s.url), "", "lock", "run", name, "--", "echo", "ran")
	if r.code != 0 || r.out != "ran\n" {
		t.Errorf("exit %d, %q, %q", r.code, r.out, r.err)
	}
}

func TestLockRun_atLeastLetsAShortJobRunOnce(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("lock", "run", "job", "--at-least", "1m", "--", "true")
	if r := s.run("", "lock", "run", "job", "--nonblock", "--", "echo", "ran"); r.code != 1 || r.out != "" {
		t.Errorf("exit %d, %q", r.code, r.out)
	}
}

func TestLockRun_atMostEndsTheCommand(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.fails(exitAtMost, []string{"lock", "run", "job", "--at-most", "300ms", "--", "sleep", "60"}, "reached its time limit")
	s.free("job")
	at := time.Now() // a command that does not heed SIGTERM, and no grace
	s.fails(exitAtMost, []string{"lock", "run", "job", "--ttl", "1m", "--at-most", "300ms", "--grace", "0", "--", "sh", "-c", "trap '' TERM; exec sleep 60"}, "")
	if took := time.Since(at); took > 5*time.Second {
		t.Errorf("it was ended after %v", took)
	}
}

func TestLockRun_waitsForTheLock(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	h := s.holds("job")
	done := make(chan ran, 1)
	go func() { done <- s.run("", "lock", "run", "job", "--", "echo", "ran") }()
	testredis.Eventually(t, patience, func() bool {
		return s.rdb.ZCard(t.Context(), strings.TrimSuffix(s.lockKey("job"), "lock")+"wait").Val() == 1
	}, "it waits")
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.code != 0 || r.out != "ran\n" {
		t.Errorf("exit %d, %q, %q", r.code, r.out, r.err)
	}
}
