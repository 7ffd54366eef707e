package onbeat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// inbox is a receiver that keeps each message by its ID.
type inbox struct {
	*httptest.Server
	key []byte

	mu    sync.Mutex
	got   map[string]notify.Message
	times map[string]int
}

func newInbox(t *testing.T) *inbox {
	in := &inbox{key: []byte("a key of sixteen bytes or more"), got: map[string]notify.Message{}, times: map[string]int{}}
	in.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := notify.Verify(in.key, r.Header, body, time.Now()); err != nil {
			t.Error(err)
		}
		var one struct{ Data notify.Message }
		if err := json.Unmarshal(body, &one); err != nil {
			t.Error(err)
		}
		in.mu.Lock()
		defer in.mu.Unlock()
		in.got[r.Header.Get("Webhook-Id")] = one.Data
		in.times[r.Header.Get("Webhook-Id")]++
	}))
	t.Cleanup(in.Close)
	return in
}

// counts are how many things the messages told of, by topic.
func (in *inbox) counts() map[notify.Topic]int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	all := map[notify.Topic]int64{}
	for _, m := range in.got {
		all[m.Topic] += m.Count
	}
	return all
}

// Tasks that die while one instance after another leads are told of, each once; and nothing in Redis knows the URL.
func TestNotify_tellsOfEachDeadTaskOnceWhoeverLeads(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		in := newInbox(t)
		ns := testredis.Namespace(t)
		start := func(release string) *onbeat.Dispatcher {
			d := dispatcher(t, rdb, onbeat.Config{
				Namespace: ns, Release: release, Concurrency: 50,
				Notify: []notify.Target{{Name: "ops", URL: in.URL + "/sesame", Key: in.key, Window: time.Second, On: []notify.Topic{notify.Dead, notify.Leader}}},
			})
			if err := d.Handle("job", handlers.Func(func(context.Context, *task.Task) error { return handlers.Dead(errors.New("broken")) })); err != nil {
				t.Fatal(err)
			}
			return d
		}
		const each = 300
		add := func(d *onbeat.Dispatcher) {
			for range each {
				if _, err := d.Enqueue(t.Context(), task.New("job", nil)); err != nil {
					t.Fatal(err)
				}
			}
		}
		first := start("v1")
		stop := run(t, first)
		testredis.Eventually(t, 30*time.Second, func() bool { return first.Unready() == nil }, "the first is ready")
		testredis.Eventually(t, 30*time.Second, func() bool { return rdb.Exists(t.Context(), "onbeat:{"+ns+"}:notices").Val() == 1 }, "the first leader has begun to follow")
		for _, release := range []string{"v2", "v3"} {
			add(first)
			next := start(release)
			stopNext := run(t, next)
			testredis.Eventually(t, 30*time.Second, func() bool { return next.Unready() == nil }, "the next is ready")
			stop()
			first, stop = next, stopNext
		}
		add(first)
		testredis.Eventually(t, 60*time.Second, func() bool { return in.counts()[notify.Dead] >= 3*each }, "a message of each task")
		time.Sleep(2 * time.Second) // a second message of a task would come now
		got := in.counts()
		if got[notify.Dead] != 3*each || got[notify.Leader] < 2 {
			t.Errorf("told of %v", got)
		}
		in.mu.Lock()
		defer in.mu.Unlock()
		if len(in.got) > 60 {
			t.Errorf("%d messages", len(in.got))
		}
		for id, n := range maps.All(in.times) {
			if n != 1 {
				t.Errorf("%s was sent %d times", id, n)
			}
		}
		for key := range keysWith(t, rdb, ns, "sesame") {
			t.Errorf("%s has the URL", key)
		}
	})
}

// keysWith are the hashes of a namespace that hold a text.
func keysWith(t *testing.T, rdb *redis.Client, ns, text string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, name := range []string{"tasks", "notices", "details", "schedules"} {
		for _, value := range rdb.HGetAll(t.Context(), "onbeat:{"+ns+"}:"+name).Val() {
			if strings.Contains(value, text) {
				found[name] = true
			}
		}
	}
	return found
}

// An archive that is away is told of while entries wait, and once more when it has caught up. The observer hears of it as well.
func TestNotify_tellsOfAnArchiveThatIsBehind(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	in := newInbox(t)
	away := filepath.Join(t.TempDir(), "away")
	d := archiving(t, rdb, "sqlite://"+filepath.Join(away, "archive.db"), "v1", onbeat.Config{
		Notify: []notify.Target{{Name: "ops", URL: in.URL, Key: in.key, Window: time.Second, On: []notify.Topic{notify.ArchiveBehind}}},
	})
	d.TellOfArchive(time.Second)
	defer run(t, d)()
	told := func(text string) func() bool {
		return func() bool {
			in.mu.Lock()
			defer in.mu.Unlock()
			for _, m := range in.got {
				if m.Topic == notify.ArchiveBehind && slices.ContainsFunc(m.Notices, func(n notify.Notice) bool { return strings.Contains(n.Text, text) }) {
					return true
				}
			}
			return false
		}
	}
	testredis.Eventually(t, patience, told("have waited to be archived"), "the target hears that the archive is behind")
	must(t, os.Mkdir(away, 0o700))
	testredis.Eventually(t, 2*patience, told("has caught up"), "the target hears that the archive has caught up")
}

// A receiver that fails at first gets its message all the same. A receiver that never answers, or has the
// certificate of another, holds up no other. Redis keeps no URL of any receiver.
func TestNotify_aBadReceiverHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	rdb, ns := testredis.Real(t), testredis.Namespace(t)
	good, late := newInbox(t), newInbox(t)
	var failed, slow atomic.Int32
	serve := func(tls bool, h http.HandlerFunc) string {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		if tls {
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		return s.URL + "/sesame"
	}
	over := make(chan struct{})
	urls := map[string]string{"good": good.URL + "/sesame"}
	urls["fails"] = serve(false, func(w http.ResponseWriter, r *http.Request) {
		if failed.Add(1) == 1 {
			http.Error(w, "not now", http.StatusInternalServerError)
			return
		}
		late.Config.Handler.ServeHTTP(w, r)
	})
	urls["slow"] = serve(false, func(_ http.ResponseWriter, r *http.Request) {
		slow.Add(1)
		select {
		case <-r.Context().Done():
		case <-over:
		}
	})
	t.Cleanup(func() { close(over) }) // before the server is closed, which waits for it
	urls["liar"] = serve(true, func(http.ResponseWriter, *http.Request) { t.Error("sent to a server whose certificate is another's") })
	c := onbeat.Config{Namespace: ns, Concurrency: 10}
	for name, url := range urls {
		c.Notify = append(c.Notify, notify.Target{
			Name: name, URL: url, Key: good.key, Window: time.Second, Timeout: time.Second, On: []notify.Topic{notify.Dead},
		})
	}
	d := dispatcher(t, rdb, c)
	must(t, d.Handle("job", handlers.Func(func(context.Context, *task.Task) error { return handlers.Dead(errors.New("broken")) })))
	defer run(t, d)()
	testredis.Eventually(t, patience, func() bool { return rdb.Exists(t.Context(), "onbeat:{"+ns+"}:notices").Val() == 1 }, "the leader has begun to follow")
	_, err := d.Enqueue(t.Context(), task.New("job", nil))
	must(t, err)
	testredis.Eventually(t, patience, func() bool { return good.counts()[notify.Dead] == 1 }, "the good receiver has its message")
	testredis.Eventually(t, patience, func() bool { return late.counts()[notify.Dead] == 1 && slow.Load() > 0 }, "the one that failed has it too")
	for key := range keysWith(t, rdb, ns, "sesame") {
		t.Errorf("%s has a URL", key)
	}
}

// The dispatcher's own messages need no room of the users: neither the limit of payloads nor that of lanes is theirs.
func TestNotify_hasRoomOfItsOwn(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		in := newInbox(t)
		d := dispatcher(t, rdb, onbeat.Config{PayloadLimit: 10, Notify: []notify.Target{
			{Name: "ops", URL: in.URL, Key: in.key, Window: time.Second, On: []notify.Topic{notify.Dead}},
		}})
		must(t, d.Handle("job", handlers.Func(func(context.Context, *task.Task) error { return handlers.Dead(errors.New("broken")) })))
		keys, ctx := d.Queue().Keys(), t.Context()
		for i := range 2000 {
			must(t, rdb.HSet(ctx, keys.Lanes, fmt.Sprintf("q%d|normal|other", i), time.Now().UnixMilli()).Err())
		}
		defer run(t, d)()
		testredis.Eventually(t, patience, func() bool { return rdb.Exists(ctx, keys.Notices).Val() == 1 }, "the leader has begun to follow")
		must(t, rdb.HDel(ctx, keys.Lanes, "q0|normal|other").Err()) // room for one of a user
		_, err := d.Enqueue(ctx, task.New("job", nil))
		must(t, err)
		if _, err := d.Enqueue(ctx, task.New("another", nil)); err == nil {
			t.Fatal("there is room for more")
		}
		testredis.Eventually(t, patience, func() bool { return in.counts()[notify.Dead] == 1 }, "a message")
		b, err := d.Admin().Bulks.Begin(ctx, admin.BulkSpec{Action: admin.DeleteTasks, Filter: admin.TaskFilter{State: admin.TaskDead, Type: "job"}})
		must(t, err)
		testredis.Eventually(t, patience, func() bool {
			b, err := d.Admin().Bulks.Get(ctx, b.ID)
			return err == nil && b.Changed == 1
		}, "a bulk action")
	})
}
