package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
)

// epoch returns the leader's epoch, as Redis holds it.
func (w *world) epoch(rdb *redis.Client) int64 {
	w.Helper()
	text, err := rdb.HGet(context.Background(), "onbeat:{"+w.NS+"}:leader", "epoch").Result()
	if err != nil {
		w.Fatal(err)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// Redis is killed under load and comes back with its append-only file. With appendfsync always and with everysec, all
// answered writes are there: everysec too hands them to the kernel before it answers, and loses the last second only if the
// machine crashes.
func TestFault_redisIsKilledAndKeepsItsFile(t *testing.T) {
	t.Parallel()
	for _, fsync := range []string{"everysec", "always"}[:testredis.Size(1, 2)] {
		t.Run(fsync, func(t *testing.T) {
			t.Parallel()
			w, srv := privateWorld(t, "--appendonly", "yes", "--appendfsync", fsync)
			rdb := srv.Client()
			config := w.Config("onbeat.yaml", "concurrency: 20\nlease: 1s\n", w.Beat("a", beatEvery, "missed: all"), w.Beat("b", time.Second, "missed: all"))
			p := w.Serve("one", config)
			p.Said("leads")
			w.Grow(10, "nothing arrives")
			n := testredis.Size(2, 20)
			for i := range n {
				before := w.epoch(rdb)
				id := fmt.Sprintf("answered-%d", i)
				time.Sleep(rand.N(300 * time.Millisecond)) // the fault's own moment
				w.Must("enqueue", "http", "--id", id, "--payload", w.Payload("answered"))
				srv.Kill()
				time.Sleep(rand.N(2 * time.Second)) // the outage: shorter and longer than the lease
				srv.Restart()
				w.Arrived(id)
				w.Grow(10, "the beat stopped after Redis came back")
				if after := w.epoch(rdb); after < before {
					t.Errorf("epoch %d after %d", after, before)
				}
			}
			testredis.Eventually(t, 20*time.Second, func() bool {
				return !strings.Contains(w.Must("schedules", "list", "--json"), `"behind":`) && !strings.Contains(w.Must("tasks", "list", "--json", "--limit", "1000"), `"waiting"`)
			}, "slots of the outage wait")
			ended := time.Now()
			p.Stop()
			w.WantEverySlot("b", time.Second, true)
			w.WantAuditAgrees("b")
			w.wantBeats("Redis killed, appendfsync "+fsync, ended, []string{"a"}, fmt.Sprintf("%d times, down up to 2 s", n))
		})
	}
}

// SCRIPT FLUSH again and again, under load: each client loads the scripts again that it needs, and no task is lost or runs
// twice.
func TestFault_scriptsAreFlushedUnderLoad(t *testing.T) {
	testredis.OnlyInASoak(t)
	t.Parallel()
	w, srv := privateWorld(t)
	rdb := srv.Client()
	p := w.Serve("one", w.Config("onbeat.yaml", "concurrency: 20\nlease: 2s\n", w.Beat("a", beatEvery)))
	p.Said("leads")
	n := testredis.Size(2000, 20_000)
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"type":"http","id":"job-%05d","in":"%dms","payload":{"url":%q}}`+"\n", i, 2*i, w.Rec.URL("job"))
	}
	file := w.File("tasks.jsonl", lines.String())
	ctx, stop := context.WithCancel(context.Background())
	flushed := make(chan int)
	go func() {
		count := 0
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-tick.C:
				if rdb.ScriptFlush(ctx).Err() == nil {
					count++
				}
			case <-ctx.Done():
				tick.Stop()
				flushed <- count
				return
			}
		}
	}()
	code, out, errs := w.Try("enqueue", "--file", file)
	if code != 0 {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	testredis.Eventually(t, 2*time.Minute, func() bool { return w.Rec.Count() >= n }, "not all arrive")
	w.Arrived(fmt.Sprintf("job-%05d", n-1))
	w.Must("tasks", "list", "--json")
	stop()
	count := <-flushed
	ended := time.Now()
	p.Stop()
	seen := map[string]int{}
	for _, a := range w.Rec.Arrivals() {
		if seen[a.ID]++; seen[a.ID] > 1 {
			t.Errorf("%s came %d times", a.ID, seen[a.ID])
		}
	}
	for i := range n {
		if id := fmt.Sprintf("job-%05d", i); seen[id] != 1 {
			t.Errorf("%s came %d times", id, seen[id])
		}
	}
	if count < 100 {
		t.Errorf("only %d flushes: this proves nothing", count)
	}
	if strings.Contains(p.Log(), "NOSCRIPT") {
		t.Error("a NOSCRIPT came through to the log")
	}
	w.wantBeats("SCRIPT FLUSH under load", ended, []string{"a"}, fmt.Sprintf("%d flushes, %d tasks besides", count, n))
}

// Redis is at maxmemory and evicts nothing. New tasks are refused in one line, leases are kept, and existing tasks run. When
// there is room again, every slot has run, on the grid.
func TestFault_redisIsFull(t *testing.T) {
	t.Parallel()
	w, srv := privateWorld(t, "--maxmemory-policy", "noeviction")
	rdb := srv.Client()
	p := w.Serve("one", w.Config("onbeat.yaml", "concurrency: 20\nlease: 3s\n", w.Beat("a", beatEvery, "missed: all"), w.Beat("b", time.Second, "missed: all")))
	p.Said("leads")
	w.Grow(20, "nothing arrives")
	epoch := w.epoch(rdb)
	n := testredis.Size(1, 10)
	const outage = 8 * time.Second // longer than the horizon, so that slots could not be pushed in time
	for range n {
		if err := rdb.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
			t.Fatal(err)
		}
		code, out, errs := w.Try("enqueue", "http", "--id", "refused", "--payload", w.Payload(""))
		if code != 1 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "redis is out of memory") {
			t.Errorf("enqueue into a full Redis: exit %d, %q%q, want 1 and one line that says it is full", code, out, errs)
		}
		time.Sleep(outage)
		if err := rdb.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
			t.Fatal(err)
		}
		w.Grow(20, "the beat does not come back")
	}
	if now := w.epoch(rdb); now != epoch {
		t.Errorf("epoch %d after %d: the lease was lost though Redis answered", now, epoch)
	}
	ended := time.Now()
	p.Stop()
	w.WantEverySlot("b", time.Second, false)
	w.WantAuditAgrees("b")
	w.wantBeats("Redis at maxmemory, noeviction", ended, []string{"a"}, fmt.Sprintf("%d times for %v", n, outage))
}

// With a policy that may drop keys, an instance warns when it starts, and onbeat doctor fails.
func TestFault_anEvictionPolicyThatDropsKeysIsNamed(t *testing.T) {
	t.Parallel()
	for policy, bad := range map[string]bool{"allkeys-lru": true, "volatile-ttl": true, "noeviction": false} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			w, _ := privateWorld(t, "--maxmemory-policy", policy)
			p := w.Serve("one", w.Config("onbeat.yaml", "", w.Beat("a", beatEvery)))
			p.Said("leads")
			w.Grow(1, "nothing arrives")
			p.Stop()
			const want = `"message":"redis may drop keys`
			if got := strings.Contains(p.Log(), want); got != bad {
				t.Errorf("an instance says %q: %v, want %v", want, got, bad)
			}
			if bad && !strings.Contains(p.Log(), policy) {
				t.Errorf("it does not name %s", policy)
			}
			if code, out, _ := w.Try("doctor"); (code == 1) != bad || bad && !strings.Contains(out, policy) {
				t.Errorf("doctor: exit %d: %s", code, out)
			}
		})
	}
}
