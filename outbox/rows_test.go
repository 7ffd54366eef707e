package outbox

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// A user who may only insert can write anything into the columns of a row. The row holds up no other, and all texts about it are short.
func TestMover_survivesWhatARowMayHold(t *testing.T) {
	t.Parallel()
	type row struct {
		set     string
		value   any
		refused bool
	}
	long := strings.Repeat("x", 1<<20)
	each(t, func(t *testing.T, w *world) {
		rows := []row{
			{"mark = $1", long, true}, {"mark = $1", "", true}, {"task = $1", long, true}, {"unique_key = $1", long, true},
			{"type = $1", long, false}, {"delay_ms = $1", int64(math.MaxInt64), false}, {"delay_ms = $1", int64(math.MinInt64), false},
			{"record = $1", task.Encode(nil, &task.Task{Type: "a\x00\xff"}), true},
		}
		if strings.HasPrefix(w.at.URL, "sqlite") {
			rows = append(rows, row{"unique_ms = $1", "soon", false}, row{"delay_ms = $1", "soon", false}, row{"delay_ms = $1", 1e300, false},
				row{"added = $1", "soon", false}, row{"mark = $1", []byte("\xff\x00"), true}, row{"record = $1", 7, true})
		} else {
			rows = append(rows, row{"added = $1::timestamptz", "infinity", false}, row{"added = $1::timestamptz", "-infinity", false})
		}
		m := w.mover()
		for _, r := range rows {
			w.add(task.New("job", nil, task.ID("bad")), task.New("job", nil))
			_, err := w.db.ExecContext(t.Context(), "UPDATE onbeat_outbox SET "+r.set+" WHERE task = 'bad'", r.value)
			w.must(err)
			if _, err := Look(t.Context(), w.at, w.ns); err != nil {
				t.Errorf("%s: the look: %v", r.set, err)
			}
			w.drain(m)
			want := 0
			if r.refused {
				want = 1
			}
			if waits, refused := w.count("SELECT count(*) FROM onbeat_outbox WHERE refused IS NULL"), w.rows(); waits != 0 || refused != want {
				t.Errorf("%s, %.10v: %d rows wait, %d are there, want %d", r.set, r.value, waits, refused, want)
			}
			_, err = w.db.ExecContext(t.Context(), "DELETE FROM onbeat_outbox")
			w.must(err)
			w.rdb.HDel(t.Context(), w.keys.Tasks, "bad")
		}
		events, err := w.q.Events(t.Context(), time.Time{}, 100)
		w.must(err)
		for _, e := range events {
			for name, text := range e.Fields {
				if len(text) > 2*maxError {
					t.Errorf("the event has a %s of %d bytes", name, len(text))
				}
			}
		}
	})
}

// A row that is larger than any that could be moved is not read: that might take longer than a batch may, each time anew. The test is not
// parallel, because it counts what is allocated.
func TestMover_refusesAVeryLargeRowWithoutReadingIt(t *testing.T) {
	const size = 8 << 20
	for name, url := range map[string]string{"sqlite": onSQLite(t), "postgres": testpostgres.Database(t)} {
		w := newWorld(t, url, testredis.Client(t))
		w.add(task.New("job", nil, task.ID("large")), task.New("job", nil, task.ID("last")))
		record := fmt.Sprintf("convert_to(repeat('x', %d), 'UTF8')", size)
		if name == "sqlite" {
			record = fmt.Sprintf("zeroblob(%d)", size)
		}
		_, err := w.db.ExecContext(t.Context(), "UPDATE onbeat_outbox SET record = "+record+" WHERE task = 'large'")
		w.must(err)
		m := w.mover()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		w.drain(m)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > size/2 {
			t.Errorf("%s: moving took %d bytes", name, n)
		}
		if w.seen.of(Moved) != 1 || w.seen.of(Refused) != 1 || w.records()["last"] == nil {
			t.Errorf("%s: %v", name, w.seen.results)
		}
		events, err := w.q.Events(t.Context(), time.Time{}, 10)
		w.must(err)
		if len(events) != 1 || events[0].Fields["task"] != "large" || events[0].Fields["type"] != "job" {
			t.Errorf("%s: %+v", name, events)
		}
		limit := w.mover(func(c *MoverConfig) {
			c.Producer = w.producer(producer.Config{Limits: task.Limits{Payload: size}})
		})
		if limit.mostRow() <= size || m.mostRow() >= size {
			t.Errorf("%s: %d and %d", name, limit.mostRow(), m.mostRow())
		}
	}
}

// A time that is too long for a Duration becomes a long Duration, and never a short one.
func TestMs_isNeverShortForATimeThatIsLong(t *testing.T) {
	t.Parallel()
	const wraps = 1<<63/1_000_000*2 + 1 // twice around
	for _, n := range []int64{math.MaxInt64, wraps} {
		if got := ms(n); got < 290*365*24*time.Hour {
			t.Errorf("%d ms: %s", n, got)
		}
	}
	if ms(5) != 5*time.Millisecond || ms(math.MinInt64) > 0 {
		t.Error(ms(5), ms(math.MinInt64))
	}
}
