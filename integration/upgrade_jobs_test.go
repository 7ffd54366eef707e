package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/trial"
)

// job is a one-off task that a program enqueued.
type job struct {
	id    string
	by    program
	step  string // the step in which it was enqueued
	fails int    // how many of its attempts fail
	key   string // tasks of one key run one at a time
}

// line is one line of a file of tasks.
type line map[string]any

// enqueues makes a program enqueue one-off tasks: some due now and some later, so that the other program runs some of them;
// some with a key; some with attempts that fail.
func (u *upgrade) enqueues(by program) {
	u.Helper()
	round := len(u.jobs)
	var text strings.Builder
	add := func(name, query string, fails int, key string, more line) {
		id := fmt.Sprintf("%s-%d", name, round)
		l := line{"type": "http", "id": id, "payload": u.payload(query), "backoff": "200ms", "backoff_cap": "400ms"}
		for k, v := range more {
			l[k] = v
		}
		if key != "" {
			l["key"], l["key_limit"] = key, 1
		}
		b, err := json.Marshal(l)
		if err != nil {
			u.Fatal(err)
		}
		text.Write(append(b, '\n'))
		u.jobs = append(u.jobs, job{id, by, u.now(), fails, key})
	}
	add("now", "", 0, "", nil)
	add("high", "", 0, "", line{"priority": "high", "queue": "other"})
	add("soon", "", 0, "", line{"in": "700ms"})
	add("later", "", 0, "", line{"in": "2s"})
	add("retried", "?fails=2", 2, "", nil)
	add("retried-later", "?fails=1&again=2", 1, "", line{"in": "300ms"})
	add("long", "?for=1500ms", 0, "", nil)
	alone := fmt.Sprintf("alone-%d", round) // this key is in use during the handover: one task runs, one waits
	add("keyed-long", "?for=1500ms", 0, alone, nil)
	add("keyed-behind", "", 0, alone, line{"in": "300ms"})
	for i := range 3 {
		add(fmt.Sprintf("keyed-%d", i), "?for=80ms", 0, "key", nil)
	}
	add("keyed-later", "?fails=1&for=80ms", 1, "key", line{"in": "1s"})
	u.must(by, "enqueue", "--file", u.File(fmt.Sprintf("tasks-%d.jsonl", round), text.String()))
}

// done waits until every job has succeeded, and names the jobs that do not.
func (u *upgrade) done() {
	u.Helper()
	u.step("every one-off task is to be done")
	for deadline := time.Now().Add(30 * time.Second); len(u.undone()) > 0 && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond) // between two looks
	}
	left := u.undone()
	for _, j := range left[:min(len(left), 5)] {
		_, was, errs := u.try(u.old, "tasks", "show", j.id, "--json")
		_, is, moreErrs := u.try(u.next, "tasks", "show", j.id, "--json")
		u.Errorf("task %s, enqueued by the %s in %s, is not done after 30s. Runs: %s; to the %s: %s%s; to the %s: %s%s", j.id, j.by,
			j.step, u.told(u.Task(j.id)), u.old, was, errs, u.next, is, moreErrs)
	}
	if len(left) > 0 {
		u.Errorf("%s: %d of %d one-off tasks are not done", u.now(), len(left), len(u.jobs))
	}
}

// undone returns the jobs whose attempts did not all reach the recorder.
func (u *upgrade) undone() (list []job) {
	answered := map[string]int{}
	for _, a := range u.Rec.Arrivals() {
		if !a.Ended.IsZero() && !a.GivenUp {
			answered[a.ID]++
		}
	}
	for _, j := range u.jobs {
		if answered[j.id] <= j.fails {
			list = append(list, j)
		}
	}
	return list
}

// wantJobs fails unless each job ran as often as it should, one attempt after the other and not early, and both programs list
// it as done. If instances were killed, one more attempt is allowed.
func (u *upgrade) wantJobs(killed bool) {
	u.Helper()
	keyed := map[string][]trial.Arrival{}
	for _, j := range u.jobs {
		runs := slices.SortedFunc(slices.Values(u.Task(j.id)), byArrival)
		if len(runs) != j.fails+1 && !(killed && len(runs) > j.fails) {
			u.Errorf("task %s, enqueued by the %s in %s: %d runs, want %d: %s", j.id, j.by, j.step, len(runs), j.fails+1, u.told(runs))
		}
		for i, a := range runs {
			if a.At.Before(a.Slot) || i > 0 && (a.Attempt <= runs[i-1].Attempt || a.Fence <= runs[i-1].Fence) {
				u.Errorf("task %s, enqueued by the %s in %s: early, or again as the same attempt: %s", j.id, j.by, j.step, u.told(runs))
			}
		}
		if j.key != "" {
			keyed[j.key] = append(keyed[j.key], runs...)
		}
	}
	for key, runs := range keyed {
		u.wantAlone("tasks with the key "+key, runs)
	}
	u.wantListed(u.old)
	u.wantListed(u.next)
}

// wantListed fails unless a program lists each job as done, after as many attempts as arrived.
func (u *upgrade) wantListed(p program) {
	u.Helper()
	after, seen := "", map[string]int{}
	for {
		var page struct {
			Items []struct {
				ID       string
				Attempts int
			}
			Next string
		}
		u.read(p, &page, "tasks", "list", "--state", "done", "--limit", "1000", "--after", after)
		for _, t := range page.Items {
			seen[t.ID] = t.Attempts
		}
		if after = page.Next; after == "" {
			break
		}
	}
	for _, j := range u.jobs {
		if runs := u.Task(j.id); seen[j.id] != len(runs) {
			u.Errorf("the %s lists task %s, enqueued by the %s in %s, as done after %d attempts, want %d: %s", p, j.id, j.by, j.step,
				seen[j.id], len(runs), u.told(runs))
		}
	}
}

// told returns which program ran which attempt, and when.
func (u *upgrade) told(runs []trial.Arrival) (s string) {
	for _, a := range runs {
		s += fmt.Sprintf("[attempt %d, fence %d, due %s, at %s on %s, in %s] ", a.Attempt, a.Fence, a.Slot.Format(stampLayout),
			a.At.Format(stampLayout), u.whose(a.Release), u.during(a.At))
	}
	return s
}

// crossed returns how many jobs one program enqueued and the other ran, at least in part.
func (u *upgrade) crossed() (n int) {
	for _, j := range u.jobs {
		if slices.ContainsFunc(u.Task(j.id), func(a trial.Arrival) bool { return !strings.HasSuffix(u.whose(a.Release), j.by.name) }) {
			n++
		}
	}
	return n
}
