package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// Each program lists, shows, runs, cancels, retries and forgets the tasks and schedules that the other stored, tasks in every
// state.
func TestUpgrade_eachProgramReadsWhatTheOtherStored(t *testing.T) {
	beginBuild(t, earlierBinary)
	t.Parallel()
	for _, c := range []struct {
		name  string
		newer bool // the newer program wrote it
	}{{"what the old one stored", false}, {"what the new one stored", true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := newUpgrade(t, "")
			writer, reader := u.old, u.next
			if c.newer {
				writer, reader = u.next, u.old
			}
			u.wantWaitingTasksRead(writer, reader)
			u.wantSchedulesRead(writer, reader)
			u.wantWorkRead(writer, reader)
			u.wantListsRead(writer, reader)
		})
	}
}

// record is an object that a program printed as JSON.
type record map[string]any

// wantSame fails unless both programs print the same. The new one must print every field of the old one.
func (u *upgrade) wantSame(what string, args ...string) record {
	u.Helper()
	var was, is record
	u.read(u.old, &was, args...)
	u.read(u.next, &is, args...)
	for _, d := range differences("", map[string]any(was), map[string]any(is)) {
		u.Errorf("%s: %s: onbeat %s: %s (to the %s, then to the %s)", u.now(), what, strings.Join(args, " "), d, u.old, u.next)
	}
	for p, r := range map[program]record{u.old: was, u.next: is} {
		if text, err := json.Marshal(r); err != nil || strings.Contains(string(text), `"unreadable"`) {
			u.Errorf("%s: %s: the %s cannot read it: %s, %v", u.now(), what, p, text, err)
		}
	}
	return is
}

// differences returns the fields of one value that another lacks, or has with another value. New fields of the other do not
// count.
func differences(path string, was, is any) (list []string) {
	switch was := was.(type) {
	case map[string]any:
		if is, ok := is.(map[string]any); ok {
			for _, field := range slices.Sorted(maps.Keys(was)) {
				list = append(list, differences(path+"."+field, was[field], is[field])...)
			}
			return list
		}
	case []any:
		if is, ok := is.([]any); ok && len(was) == len(is) {
			for i := range was {
				list = append(list, differences(fmt.Sprintf("%s[%d]", path, i), was[i], is[i])...)
			}
			return list
		}
	}
	if !reflect.DeepEqual(was, is) {
		list = append(list, fmt.Sprintf("%s is %v and %v", path, was, is))
	}
	return list
}

// shown fails unless both programs show a task alike, in a state.
func (u *upgrade) shown(id, state string) record {
	u.Helper()
	r := u.wantSame("task "+id, "tasks", "show", id)
	if r["state"] != state {
		u.Errorf("%s: task %s is %v, want %s: %v", u.now(), id, r["state"], state, r)
	}
	return r
}

// refuses fails unless a program fails, and says why.
func (u *upgrade) refuses(p program, says string, args ...string) {
	u.Helper()
	if code, out, errs := u.try(p, args...); code != 1 || !contains(errs, says) {
		u.Errorf("%s: the %s: onbeat %s: exit %d, want 1 and %q: %s%s", u.now(), p, strings.Join(args, " "), code, says, out, errs)
	}
}

// does fails unless a program says that it did the operation on each of these.
func (u *upgrade) does(p program, word, command, verb string, names ...string) {
	u.Helper()
	var said []struct{ Name, Result string }
	u.read(p, &said, append([]string{command, verb}, names...)...)
	for i, name := range names {
		if len(said) != len(names) || said[i].Name != name || said[i].Result != word {
			u.Errorf("%s: the %s: %s %s %s: it says %+v, want %q", u.now(), p, command, verb, name, said, word)
		}
	}
}

// enqueueFile makes a program add the tasks of a file.
func (u *upgrade) enqueueFile(p program, lines ...line) {
	u.Helper()
	var text strings.Builder
	for _, l := range lines {
		b, err := json.Marshal(l)
		if err != nil {
			u.Fatal(err)
		}
		text.Write(append(b, '\n'))
	}
	u.must(p, "enqueue", "--file", u.File(fmt.Sprintf("tasks-%d.jsonl", time.Now().UnixNano()), text.String()))
}

// wantWaitingTasksRead makes one program enqueue waiting tasks, with every option, and the other deal with them.
func (u *upgrade) wantWaitingTasksRead(writer, reader program) {
	u.Helper()
	u.step("the %s enqueues tasks that wait, the %s reads them", writer, reader)
	u.enqueueFile(writer,
		line{"type": "http", "id": "all-options", "payload": u.payload("all"), "in": "1h", "queue": "other", "priority": "high",
			"timeout": "7s", "max_attempts": 4, "backoff": "3s", "backoff_cap": "1m", "unique": "window", "unique_for": "2h",
			"key": "key of all", "key_limit": 3, "keep": "5m"},
		line{"type": "http", "id": "low", "payload": u.payload("low"), "at": "2100-01-02T03:04:05Z", "priority": "low"},
		line{"type": "of-nobody", "id": "unhandled", "payload": line{"a": 1}},
		line{"type": "echo", "id": "cancelled", "in": "1h", "key": "k", "key_limit": 1},
		line{"type": "echo", "id": "deleted", "in": "1h"},
	)
	var made struct{ ID string }
	u.read(writer, &made, "enqueue", "http", "--in", "1h", "--payload", string(u.payload("plain")), "--unique", "short", "--unique-for", "1h")
	for _, id := range []string{"all-options", "low", "unhandled", "cancelled", "deleted", made.ID} {
		u.shown(id, "due")
	}
	u.wantSame("the tasks that are due", "tasks", "list", "--state", "due")

	u.refuses(reader, "already there", "enqueue", "echo", "--id", "low")
	u.refuses(reader, `"all-options" holds the unique key`, "enqueue", "echo", "--unique", "window")
	u.refuses(reader, `"`+made.ID+`" holds the unique key`, "enqueue", "echo", "--unique", "short")
	u.does(reader, "cancelled", "tasks", "cancel", "cancelled", made.ID)
	u.does(reader, "deleted", "tasks", "delete", "deleted")
	for _, id := range []string{"cancelled", "deleted", made.ID} {
		u.refuses(writer, "not found", "tasks", "show", id)
	}
}

// wantSchedulesRead makes one program apply schedules, and the other deal with them.
func (u *upgrade) wantSchedulesRead(writer, reader program) {
	u.Helper()
	u.step("the %s applies schedules, the %s reads them", writer, reader)
	full := u.Beat("full", time.Hour, `start: "2100-01-02T03:04:05Z"`, `until: "2101-01-02T03:04:05Z"`, "max_runs: 7", "jitter: 90s",
		"missed: all", "catch_up: 36h", "overlap: replace", "queue: other", "priority: low", "timeout: 11s", "max_attempts: 5",
		"backoff: {base: 2s, cap: 3m}")
	cron := fmt.Sprintf("  - name: cron\n    cron: \"5 2 1 1 *\"\n    timezone: Asia/Seoul\n    dst: {gap: skip, overlap: both}\n"+
		"    task: http\n    payload: {url: %q}\n    missed: skip\n    overlap: queue\n", u.Rec.URL("cron"))
	plain := u.Beat("plain", time.Hour, `start: "2100-01-02T03:04:05Z"`)
	late := u.Beat("late", time.Hour, `start: "2100-01-02T03:04:05Z"`)
	all := []string{full, cron, plain, late}
	if did := u.apply(writer, all...); len(did) != 4 || did["full"] != "made" {
		u.Errorf("%s: the %s says %v", u.now(), writer, did)
	}
	u.does(writer, "paused", "schedules", "pause", "plain")
	names := []string{"full", "cron", "plain", "late"}
	for _, name := range names {
		u.wantSame("schedule "+name, "schedules", "show", name)
	}
	for name, did := range u.apply(reader, all...) {
		if did != "unchanged" {
			u.Errorf("%s: the %s says that schedule %s is %s, and it is as the %s applied it", u.now(), reader, name, did, writer)
		}
	}
	u.does(reader, "paused", "schedules", "pause", "full")
	u.does(reader, "already paused", "schedules", "pause", "plain")
	u.does(reader, "resumed", "schedules", "resume", "plain")
	u.does(reader, "deleted", "schedules", "delete", "late")
	u.does(writer, "not paused", "schedules", "resume", "plain")
	if r := u.wantSame("schedule full, paused by the "+reader.name, "schedules", "show", "full"); r["paused"] != true {
		u.Errorf("%s: schedule full is not paused: %v", u.now(), r)
	}
	u.refuses(writer, "not found", "schedules", "show", "late")
	if did := u.apply(reader, u.Beat("plain", 2*time.Hour, `start: "2100-01-02T03:04:05Z"`)); did["plain"] != "changed" {
		u.Errorf("%s: the %s says %v", u.now(), reader, did)
	}
	if r := u.wantSame("schedule plain, changed by the "+reader.name, "schedules", "show", "plain"); r["every"] == nil {
		u.Errorf("%s: schedule plain has no interval: %v", u.now(), r)
	}
}

// wantWorkRead makes one program run tasks, and the other deal with them: while they run, after they ended, and in its own
// instance after the first program has stopped.
func (u *upgrade) wantWorkRead(writer, reader program) {
	u.Helper()
	u.step("the %s runs tasks", writer)
	first := u.crew(writer, u.versionOf(writer)).upWithout()
	u.enqueueFile(writer,
		line{"type": "http", "id": "dead-1", "payload": u.payload("?fails=9"), "max_attempts": 1},
		line{"type": "http", "id": "dead-2", "payload": u.payload("?fails=1"), "max_attempts": 1},
		line{"type": "http", "id": "kept", "payload": u.payload("kept")},
		line{"type": "http", "id": "forgotten", "payload": u.payload("forgotten"), "keep": "1h"},
		line{"type": "http", "id": "long", "payload": u.payload("?for=30s"), "key": "alone", "key_limit": 1},
		line{"type": "http", "id": "held-1", "payload": u.payload("held-1"), "key": "alone", "key_limit": 1, "in": "100ms"},
		line{"type": "http", "id": "held-2", "payload": u.payload("held-2"), "key": "alone", "key_limit": 1, "in": "200ms"},
	)
	u.become("dead", "dead-1", "dead-2")
	u.become("done", "kept", "forgotten")
	u.become("running", "long")
	for _, id := range []string{"held-1", "held-2"} {
		u.eventually(func() bool { return u.held(id) }, "%s does not wait for its key in the %s", id, writer)
	}

	u.step("the %s reads the tasks that the %s runs and has run", reader, writer)
	u.shown("long", "running")
	u.shown("held-1", "due")
	u.shown("kept", "done")
	if r := u.shown("dead-1", "dead"); !contains(fmt.Sprint(r["failures"]), "503") {
		u.Errorf("%s: dead-1 has no failure of its run: %v", u.now(), r)
	}
	for _, state := range []string{"running", "due", "dead", "done"} {
		u.wantSame("the tasks that are "+state, "tasks", "list", "--state", state)
	}
	u.refuses(reader, "already there", "enqueue", "echo", "--id", "kept")
	u.does(reader, "deleted", "tasks", "delete", "forgotten")
	u.refuses(writer, "not found", "tasks", "show", "forgotten")
	u.does(reader, "cancelled", "tasks", "cancel", "held-1")
	u.does(reader, "due again:", "tasks", "retry", "dead-1")
	u.eventually(func() bool { return len(u.Task("dead-1")) == 2 }, "the %s does not run dead-1, which the %s retried", writer, reader)
	u.become("dead", "dead-1")
	u.does(reader, "asked to stop", "tasks", "cancel", "long")
	u.eventually(func() bool { return len(u.Task("held-2")) == 1 }, "the %s asked the %s to stop long, which does not free its key for held-2",
		reader, writer)
	var triggered struct{ ID string }
	u.read(reader, &triggered, "schedules", "trigger", "plain")
	u.eventually(func() bool { return len(u.Task(triggered.ID)) == 1 }, "the %s does not run %s of its schedule plain, which the %s triggered",
		writer, triggered.ID, reader)

	u.step("the %s stops with tasks left, the %s goes on with them", writer, reader)
	u.enqueueFile(writer,
		line{"type": "http", "id": "pending", "payload": u.payload("?fails=1&again=3"), "max_attempts": 3},
		line{"type": "http", "id": "delayed", "payload": u.payload("delayed"), "in": "3s", "key": "alone", "key_limit": 1, "keep": "1h"},
	)
	u.eventually(func() bool { return len(u.Task("pending")) == 1 }, "the %s does not run pending", writer)
	first.replicas[0].Stop()
	if r := u.shown("pending", "due"); r["attempts"] != 1.0 || !contains(fmt.Sprint(r["failures"]), "503") {
		u.Errorf("%s: pending has not failed once: %v", u.now(), r)
	}
	u.shown("delayed", "due")
	second := u.crew(reader, u.versionOf(reader)).upWithout()
	u.does(reader, "due again:", "tasks", "retry", "dead-1", "dead-2")
	for id, runs := range map[string]int{"pending": 2, "delayed": 1, "dead-1": 3, "dead-2": 2} {
		u.eventually(func() bool { return len(u.Task(id)) >= runs }, "the %s does not run %s of the %s", reader, id, writer)
		list := u.Task(id)
		if last := list[len(list)-1]; len(list) != runs || last.Release != second.version || last.At.Before(last.Slot) {
			u.Errorf("%s: task %s of the %s is to have %d runs, the last on %s, none early: %s", u.now(), id, writer, runs, second, u.told(list))
		}
	}
	u.become("done", "pending", "delayed")
	u.become("dead", "dead-1", "dead-2")
	for _, id := range []string{"pending", "delayed"} {
		u.shown(id, "done")
	}
	for _, id := range []string{"dead-1", "dead-2"} {
		u.shown(id, "dead")
	}
	u.does(writer, "deleted", "tasks", "delete", "dead-1", "dead-2", "delayed")
	second.replicas[0].Stop()
}

// versionOf is a release of a program, by which the recorder's releases are told apart.
func (u *upgrade) versionOf(p program) string {
	if p == u.old {
		return "v1"
	}
	return "v2"
}

// upWithout starts one replica that declares no schedules, so applied schedules are left alone.
func (c *crew) upWithout() *crew {
	c.Helper()
	p := c.ServeAs(c.path, nil, c.String(), c.Config("without.yaml", c.head), "--release", c.version)
	c.replicas = append(c.replicas, p)
	p.Said("leads")
	return c
}

// become waits until both programs say that the tasks are in a state.
func (u *upgrade) become(state string, ids ...string) {
	u.Helper()
	for _, id := range ids {
		for _, p := range []program{u.old, u.next} {
			was := ""
			u.eventually(func() bool {
				_, was, _ = u.try(p, "tasks", "show", id, "--json")
				var r record
				return json.Unmarshal([]byte(was), &r) == nil && r["state"] == state
			}, "task %s does not become %s to the %s", id, state, p)
		}
	}
}

// held reports whether both programs say that a task waits for its key.
func (u *upgrade) held(id string) bool {
	for _, p := range []program{u.old, u.next} {
		var r record
		if u.read(p, &r, "tasks", "show", id); r["held"] != true {
			return false
		}
	}
	return true
}

// wantListsRead makes both programs print the remaining lists, and judge the namespace.
func (u *upgrade) wantListsRead(writer, reader program) {
	u.Helper()
	u.step("both list what is left")
	for _, p := range []program{writer, reader} {
		u.must(p, "events", "--limit", "10000")
		u.must(p, "instances")
		u.must(p, "schedules", "list")
		u.must(p, "tasks", "list")
		u.audited(p)
	}
	var was, is struct{ Items []record }
	u.read(u.old, &was, "schedules", "list")
	u.read(u.next, &is, "schedules", "list")
	if len(was.Items) != 3 || len(is.Items) != 3 {
		u.Errorf("%s: the %s lists %d schedules, the %s %d, want 3", u.now(), u.old, len(was.Items), u.next, len(is.Items))
	}
}
