package lock_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/lock"
)

// asHolder makes the test binary a process that takes a lock: its value is the URL of Redis, the namespace and the TTL.
const asHolder = "ONBEAT_TEST_LOCK_HOLDER"

// hold takes the lock, says its fence, and says why it ended.
func hold() int {
	var url, ns, ttl string
	_, _ = fmt.Sscan(os.Getenv(asHolder), &url, &ns, &ttl)
	opts, err := redis.ParseURL(url)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	o := lock.Options{Namespace: ns}
	if o.TTL, err = time.ParseDuration(ttl); err != nil {
		fmt.Println(err)
		return 1
	}
	h, err := lock.Acquire(context.Background(), redis.NewClient(opts), name, o)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("fence", h.Fence())
	<-h.Context().Done()
	fmt.Println("ended", context.Cause(h.Context()))
	fmt.Println("released", h.Release(context.Background()))
	return 0
}

// holder is a process of its own.
type holder struct {
	*exec.Cmd
	said  *bufio.Scanner
	fence int64
}

func (r *rig) holder() *holder {
	r.Helper()
	h := &holder{Cmd: exec.Command(os.Args[0])}
	h.Env = append(os.Environ(), asHolder+"="+testredis.URL(r)+" "+r.opts.Namespace+" "+r.opts.TTL.String())
	out, err := h.StdoutPipe()
	must(r, err)
	must(r, h.Start())
	r.Cleanup(func() {
		_ = h.Process.Kill()
		_ = h.Wait()
	})
	h.said = bufio.NewScanner(out)
	if _, err := fmt.Sscanf(h.line(r.T), "fence %d", &h.fence); err != nil {
		r.Fatal(err)
	}
	return h
}

func (h *holder) line(t *testing.T) string {
	t.Helper()
	if !h.said.Scan() {
		t.Fatal("the process said nothing more", h.said.Err())
	}
	return h.said.Text()
}

func TestAcquire_whenTheHolderIsKilled(t *testing.T) {
	t.Parallel()
	r := newRig(t, testredis.Real(t), func(o *lock.Options) { o.TTL = longTTL })
	dead := r.holder()
	waits := r.waiting(t.Context(), r.locker())
	r.inLine(1)
	must(t, dead.Process.Kill())
	at := time.Now()
	h := r.get(waits)
	if took := time.Since(at); took > 2*r.opts.TTL {
		t.Errorf("it took %v, with a TTL of %v", took, r.opts.TTL)
	}
	if h.Fence() <= dead.fence {
		t.Errorf("fence %d after %d", h.Fence(), dead.fence)
	}
}
