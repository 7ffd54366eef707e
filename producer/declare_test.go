package producer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// A leader that fails half way has warned of what it retired by then, and the next attempt warns of the rest.
func TestDeclare_warnsOfAllThatItRetires(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	w := newWorld(t, rdb)
	ctx := t.Context()
	var many []string
	for i := range declareChunk + 20 {
		many = append(many, fmt.Sprintf("s%03d", i))
	}
	must(t, w.lead("one", "v1", declare(many...)).takeStock(ctx))
	through := redis.NewClient(rdb.Options())
	defer through.Close()
	n, fail := 0, true
	over := worldIn(t, through, w.ns)
	through.AddHook(between(func(args []any) error {
		if over.isChange(args) {
			if n++; n == 2 && fail {
				return refusal("LOADING")
			}
		}
		return nil
	}))
	var log bytes.Buffer
	tm := over.lead("two", "v2", declare())
	tm.log = zerolog.New(&log)
	warned := func() (n int) {
		for line := range bytes.Lines(log.Bytes()) {
			var said struct{ Retired int }
			must(t, json.Unmarshal(line, &said))
			n += said.Retired
		}
		return n
	}
	if err := tm.takeStock(ctx); err == nil {
		t.Fatal("nothing failed")
	}
	if got := warned(); got != declareChunk {
		t.Errorf("it warned of %d, and retired %d", got, declareChunk)
	}
	fail = false
	must(t, tm.takeStock(ctx))
	if got := warned(); got != len(many) {
		t.Errorf("it warned of %d of %d", got, len(many))
	}
}

// sealing is the namespace for a process with one key.
func (w *world) sealing(secret byte, id string) *queue.Queue {
	w.Helper()
	q, err := queue.New(w.rdb, queue.Partition{Namespace: w.ns}, queue.Caps{})
	must(w, err)
	k, err := seal.New(task.Encryption{Keys: []task.EncryptionKey{{ID: id, Secret: bytes.Repeat([]byte{secret}, task.EncryptionKeyBytes)}}}, w.ns)
	must(w, err)
	q.SealWith(k)
	return q
}

// A leader leaves a definition alone that it cannot read, whether it lacks the key or has another one under its ID.
func TestDeclare_leavesWhatDoesNotOpen(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		ctx := t.Context()
		says := func(payload string) func() []Schedule {
			return func() []Schedule {
				return []Schedule{{Name: "d", Rule: schedule.Every(time.Hour), Task: "job", Payload: []byte(payload)}}
			}
		}
		must(t, w.leadOver(w.sealing(1, "k1"), "right", "v1", says(`{"a":1}`)).takeStock(ctx))
		stored := func() string { return rdb.HGet(ctx, w.q.Keys().Schedules, "d").Val() }
		before := stored()
		for name, q := range map[string]*queue.Queue{"lacks": w.sealing(2, "k2"), "other": w.sealing(2, "k1")} {
			var log bytes.Buffer
			tm := w.leadOver(q, name, "v2", says(`{"a":2}`))
			tm.log = zerolog.New(&log)
			must(t, tm.takeStock(ctx))
			if stored() != before {
				t.Fatalf("%s: the leader wrote over a definition that it cannot read", name)
			}
			if !bytes.Contains(log.Bytes(), []byte(`schedule \"d\"`)) {
				t.Errorf("%s: the log does not name the schedule: %s", name, &log)
			}
		}
		must(t, w.leadOver(w.sealing(1, "k1"), "right again", "v3", says(`{"a":3}`)).takeStock(ctx))
		if stored() == before {
			t.Error("a leader that can read it does not declare it")
		}
	})
}
