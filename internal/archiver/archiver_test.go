package archiver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestArchiver_goesOnFromWhereAnotherOneStopped(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, testredis.Real(t), url, queue.Caps{})
		a := w.archive()
		want := w.note(1500)
		stop := w.follow("a")
		w.eventually(a, want)
		want = append(want, w.note(10)...)
		w.eventually(a, want)
		stop()
		want = append(want, w.note(700)...)
		w.follow("b")
		w.eventually(a, want)
		if at, err := a.Position(t.Context()); err != nil || at.Read != int64(len(want)) || at.Lost != 0 {
			t.Errorf("%+v, %v", at, err)
		}
		if _, lost := w.told.now(); lost != 0 {
			t.Errorf("%d lost", lost)
		}
	})
}

// Two instances may believe that they lead. Each entry is archived once all the same.
func TestArchiver_twoAtOnceArchiveEachEntryOnce(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, testredis.Real(t), url, queue.Caps{})
		a := w.archive()
		w.follow("a")
		w.follow("b")
		var want []string
		for range 100 {
			want = append(want, w.note(20)...)
		}
		w.eventually(a, want)
	})
}

// Runs of other tasks, events and revisions are archived beside the history.
func TestArchiver_archivesAllKinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t), sqlite(t), queue.Caps{})
	a := w.archive()
	ctx := t.Context()
	w.add(w.keys.Runs, "tasks", 3)
	w.must(w.q.Tell(ctx, "no leader", "instance", "i", "since", "5"))
	at := func(n int64) string { // a revision of now: the retention, which goes on beside, leaves it
		return fmt.Sprint(10+n, " ", 9+n, " ", time.Now().UnixMilli()+n)
	}
	w.must(w.rdb.HSet(ctx, w.keys.Revisions, "beat", at(2)+" changed ann\t{\"b\":2}\n"+at(1)+" made \t{\"a\":1}").Err())
	w.must(w.rdb.ZAdd(ctx, w.keys.Changed, redis.Z{Score: 12, Member: "beat"}).Err())
	w.follow("a")
	w.eventually(a, w.note(1))
	runs, err := a.Runs(ctx, w.task(3))
	if err != nil || len(runs) != 1 || runs[0].Word != history.Done {
		t.Errorf("runs: %+v, %v", runs, err)
	}
	events, err := a.Events(ctx, time.Time{}, time.Time{}, 0)
	if err != nil || len(events) != 1 || events[0].Kind != "no leader" || events[0].Fields["since"] != "5" {
		t.Errorf("events: %+v, %v", events, err)
	}
	says, err := a.Revisions(ctx, "beat", 0, 0)
	if err != nil || len(says) != 2 || says[0].Number != 12 || says[0].Who != "ann" || says[1].Definition != `{"a":1}` {
		t.Errorf("revisions: %+v, %v", says, err)
	}
	w.must(w.rdb.HSet(ctx, w.keys.Revisions, "beat", at(3)+" deleted bob\t").Err())
	w.must(w.rdb.ZAdd(ctx, w.keys.Changed, redis.Z{Score: 13, Member: "beat"}).Err())
	testredis.Eventually(t, patience, func() bool {
		says, err := a.Revisions(ctx, "beat", 0, 0)
		return err == nil && len(says) == 3 && says[0].What == "deleted"
	}, "a later revision is archived")
}

// Once all is archived, Redis keeps of the history what it keeps without an archive.
func TestArchiver_trimsWhatIsArchived(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t), sqlite(t), queue.Caps{History: 150})
	a := w.archive()
	want := w.note(2000)
	w.add(w.keys.Runs, "tasks", 1000)
	w.follow("a")
	w.eventually(a, want)
	length := func(key string) int64 { return w.rdb.XLen(t.Context(), key).Val() }
	testredis.Eventually(t, patience, func() bool { return length(w.keys.History) < 300 && length(w.keys.Runs) < 250 }, "trimmed")
	want = append(want, w.note(500)...)
	w.eventually(a, want)
	if n := length(w.keys.History); n < 150 {
		t.Errorf("only %d entries are left in Redis", n)
	}
	if _, lost := w.told.now(); lost != 0 {
		t.Errorf("%d lost", lost)
	}
}

func TestArchiver_countsWhatRedisDroppedBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t), sqlite(t), queue.Caps{})
	a := w.archive()
	want := w.note(100)
	stop := w.follow("a")
	w.eventually(a, want)
	stop()
	lost := w.note(50)
	kept := w.note(20)
	w.must(w.rdb.XTrimMinID(t.Context(), w.keys.History, kept[0]).Err())
	w.follow("b")
	w.eventually(a, append(want, kept...))
	list, err := a.Lost(t.Context(), time.Time{})
	if err != nil || len(list) != 1 || list[0].Entries != int64(len(lost)) || list[0].Stream != "history" {
		t.Fatalf("%+v, %v", list, err)
	}
	if !list[0].From.Equal(history.At(want[99])) || !list[0].To.Equal(history.At(kept[0])) {
		t.Errorf("%+v, want from %s to %s", list[0], want[99], kept[0])
	}
	testredis.Eventually(t, patience, func() bool {
		_, n := w.told.now()
		return n == 50 && w.log.count("the archive lost entries") == 1
	}, "the observer and the log tell once")
	testredis.Eventually(t, patience, func() bool {
		events, err := w.q.Events(t.Context(), time.Time{}, 10)
		return err == nil && len(events) == 1 && events[0].Kind == "archive lost" && events[0].Fields["entries"] == "50" && events[0].Fields["instance"] == "b"
	}, "an event tells")
}

// Nothing of the history is archived yet, beside runs that are. Its first entries are dropped before they are archived.
func TestArchiver_countsWhatRedisDroppedOfABeginning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t), sqlite(t), queue.Caps{})
	a := w.archive()
	w.note(1)
	w.must(w.rdb.XTrimMaxLen(t.Context(), w.keys.History, 0).Err()) // before there was an archive
	run := w.add(w.keys.Runs, "tasks", 1)[0]
	stop := w.follow("a")
	testredis.Eventually(t, patience, func() bool {
		at, err := a.Position(t.Context())
		return err == nil && at.Runs == run
	}, "the run is archived")
	stop()
	at, err := a.Position(t.Context())
	w.must(err)
	w.note(50)
	kept := w.note(20)
	w.must(w.rdb.XTrimMinID(t.Context(), w.keys.History, kept[0]).Err())
	w.follow("b")
	w.eventually(a, kept)
	list, err := a.Lost(t.Context(), time.Time{})
	if err != nil || len(list) != 1 || list[0].Entries != 50 || list[0].Stream != "history" {
		t.Fatalf("%+v, %v", list, err)
	}
	if list[0].From.After(at.At) || !list[0].To.Equal(history.At(kept[0])) {
		t.Errorf("%+v, want from %v to %s", list[0], at.At, kept[0])
	}
}

// A failover may take the end of the stream, which is archived already. Later entries are archived, and nothing counts as lost.
func TestArchiver_aStreamThatWentBackGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t), sqlite(t), queue.Caps{})
	a := w.archive()
	want := w.note(100)
	stop := w.follow("a")
	w.eventually(a, want)
	stop()
	w.must(w.rdb.XTrimMinID(t.Context(), w.keys.History, want[30]).Err()) // these are archived: it begins again at the first one
	w.must(w.rdb.XDel(t.Context(), w.keys.History, want[90:]...).Err())
	want = append(want, w.note(5)...)
	w.follow("b")
	w.eventually(a, want)
	if _, lost := w.told.now(); lost != 0 {
		t.Errorf("%d lost", lost)
	}
}

// A Redis that came back empty may have lost entries: nobody knows how many.
func TestArchiver_aStreamThatIsNewIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t), sqlite(t), queue.Caps{})
	a := w.archive()
	want := w.note(10)
	stop := w.follow("a")
	w.eventually(a, want)
	stop()
	w.must(w.rdb.Del(t.Context(), w.keys.History).Err())
	want = append(want, w.note(5)...)
	w.follow("b")
	w.eventually(a, want)
	if list, err := a.Lost(t.Context(), time.Time{}); err != nil || len(list) != 1 || list[0].Entries != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, lost := w.told.now(); lost != 1 {
		t.Errorf("%d lost", lost)
	}
}

// A user without the rights to weigh and to trim archives all the same, and the log says once what it costs.
func TestArchiver_withoutTheRightsGoesOn(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	w := newWorld(t, admin, sqlite(t), queue.Caps{})
	p, caps := queue.Partition{Namespace: w.ns}, queue.Caps{History: 100, Buffer: 1 << 20}
	q, err := queue.New(testredis.User(t, admin, strings.Fields(queue.ACL(queue.AsInstance, p, false))), p, caps)
	w.must(err)
	w.q = q
	a := w.archive()
	want := w.note(3_000)
	w.follow("a")
	w.eventually(a, want)
	says := []string{"cannot trim what is archived", "cannot ask redis how large the history is", "cannot trim entries that wait to be archived"}
	for _, line := range says {
		testredis.Eventually(t, patience, func() bool { return w.log.count(line) > 0 }, "the log says: %s", line)
	}
	want = append(want, w.note(10)...)
	w.eventually(a, want)
	for _, line := range says {
		if n := w.log.count(line); n != 1 {
			t.Errorf("the log says %d times: %s", n, line)
		}
	}
	if n := admin.XLen(t.Context(), w.keys.History).Val(); n != int64(len(want)) {
		t.Errorf("%d entries are left", n)
	}
}

// While the database is away Redis keeps the entries. When the database is back, the entries that Redis has are archived, each once.
func TestArchiver_aDatabaseThatWasAwayMissesNothing(t *testing.T) {
	t.Parallel()
	server := testpostgres.Private(t)
	w := newWorld(t, testredis.Real(t), server.Database(), queue.Caps{})
	a := w.archive()
	want := w.note(300)
	stop := w.follow("a")
	w.eventually(a, want)
	for i, down := range []func(){server.Stop, server.Kill, server.Kill} {
		down()
		want = append(want, w.note(200)...)
		testredis.Eventually(t, patience, func() bool { behind, _ := w.told.now(); return behind >= 200 }, "it says that entries wait")
		if i == 1 { // another instance leads when the database comes back
			stop()
			stop = w.follow("b")
		}
		server.Start()
		w.eventually(a, want)
		testredis.Eventually(t, patience, func() bool { behind, _ := w.told.now(); return behind == 0 }, "nothing waits any more")
	}
	if _, lost := w.told.now(); lost != 0 {
		t.Errorf("%d lost", lost)
	}
	if w.log.count("cannot archive: trying again") < 3 || w.log.count("archiving goes on") < 2 {
		t.Error("the log does not tell")
	}
}
