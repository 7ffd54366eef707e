package model

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// call is one script call, with the caller's knowledge at that moment.
type call struct {
	op          string
	id, release string
	standby     bool
	gen, order  int64
	epoch, seq  int64
	want        int
	settle      []claim
	taken       []queue.Taken // the workers that schedules have, as the caller knows
	outcome     queue.Outcome
	last        string // the schedule's last run, as the caller read it
	behind      string // the slots that it is behind with, as the caller read them
	orphan      int64
	looked      []queue.Claim
	task        string
	leads       int64 // the generation that leads, as the caller knows it
	seen        instance.Seen
	saw         signs  // the same, by the book
	ask         string // the request of a person to the instance
}

// answer is the reply to a call.
type answer struct {
	refused    refusal
	view       *instance.View
	gen, order int64
	may        bool
	orphans    []int64
	claims     []claim
	cycle      *queue.CycleReply
	looked     []queue.Claim
	last       string
	behind     string
	moved      bool // the schedule had changed since the caller read it
	count      int
	state      task.State
	dup        string // why a task was refused
	post       bool   // the caller is the monitor, a heartbeat says
	look       instance.Look
	said       string // what became of a request
	step       queue.Step
	change     queue.Change
	recoveries []queue.Recovery
}

// refusal is an error that a script may return, having done nothing.
type refusal string

const (
	done      refusal = ""
	fenced    refusal = "fenced"
	notLeader refusal = "not the leader"
	stale     refusal = "stale"
	alive     refusal = "alive"
	notFound  refusal = "not found"
)

var refusals = map[refusal]error{
	fenced: queue.ErrFenced, notLeader: queue.ErrNotLeader, stale: queue.ErrStale, alive: queue.ErrAlive, notFound: task.ErrNotFound,
}

// make makes a call as an instance does.
func (w *world) make(c call) answer {
	var a answer
	err := w.ask(c, &a)
	for refusal, means := range refusals {
		if errors.Is(err, means) {
			return answer{refused: refusal}
		}
	}
	if err != nil {
		panic(fault{fmt.Sprintf("%s: %v", c.op, err)})
	}
	return a
}

func (w *world) ask(c call, a *answer) error {
	ctx := w.ctx
	term := queue.Term{Instance: c.id, Gen: c.gen, Epoch: c.epoch}
	view := func(v instance.View, err error) error { a.view = &v; return err }
	switch c.op {
	case "join":
		return w.join(c, a)
	case "ready":
		return view(w.reg.Ready(ctx, c.id, c.gen, instance.DefaultLease))
	case "resign":
		return view(w.reg.Resign(ctx, c.id, c.gen))
	case "leave":
		return view(w.reg.Deregister(ctx, c.id, c.gen))
	case "open":
		return view(w.reg.Open(ctx, term))
	case "promote":
		return view(w.reg.Promote(ctx, c.release))
	case "beat":
		b, err := w.reg.Heartbeat(ctx, c.id, c.gen, time.Duration(lease)*time.Millisecond, time.Time{}, "")
		a.orphans, a.count, a.post = b.Orphans, len(b.Cancel), b.Monitor
		return view(b.View, err)
	case "look out", "suspect":
		return w.lookOut(c, a)
	case "ask to resign", "ask to drain":
		return w.askOf(c, a)
	case "stand down":
		stood, v, err := w.reg.StandDown(ctx, term, "asked", true, true)
		a.may = stood
		return view(v, err)
	case "declare":
		var err error
		a.may, _, err = w.reg.Declare(ctx, term)
		return err
	case "cycle":
		return w.cycle(c, a)
	case "look":
		var err error
		a.looked, _, err = w.q.Claims(ctx, c.orphan, "")
		return err
	case "recover", "recover one":
		return w.recover(c, a)
	case "advance", "catchup", "put off", "repay", "give up":
		return w.advance(c, a, term)
	case "read":
		st, err := w.q.Schedule(ctx, scheduleName)
		a.last, a.behind = st.Last, st.Behind
		return err
	}
	return w.askClient(ctx, c, a)
}

// join calls the script of registration directly. A process that comes back passes its old order, and of the package's own
// functions only the manager can do that.
func (w *world) join(c call, a *answer) error {
	standby := "0"
	if c.standby {
		standby = "1"
	}
	values, err := w.run("register", []string{keys.Running(c.gen)},
		c.id, lease, standby, w.room.lead, w.room.consume, c.release, `{}`, grace, c.gen, c.order, 0, 0, 0)
	if err != nil {
		return err
	}
	a.gen, a.order, a.view = number(fmt.Sprint(values[0])), number(fmt.Sprint(values[1])), viewOf(values[2:])
	return nil
}

// run runs a script of the registry. Its reply must end with a view.
func (w *world) run(script string, more []string, args ...any) ([]any, error) {
	k := keys
	v, err := w.scripts[script].Run(w.ctx, w.rdb, append([]string{
		k.Instances, k.Members, k.Leader, k.Meta, k.Events, k.Wake, k.Details, k.Releases, k.Orphans, k.Watch,
		k.Trial, k.Strikes, k.Declarers, k.Asked, k.Suspects,
	}, more...), args)
	if err != nil {
		return nil, err
	}
	values, _ := v.([]any)
	if len(values) < 11 {
		return nil, fmt.Errorf("%s answered %v", script, v)
	}
	return values, nil
}

// viewOf reads the view in a reply.
func viewOf(values []any) *instance.View {
	text := func(i int) string { return fmt.Sprint(values[i]) }
	return &instance.View{
		Leader: text(1), LeaderGen: number(text(2)), Epoch: number(text(3)), Open: text(4) == "1", May: text(8) == "1",
		State: map[string]string{"s": "starting", "r": "ready", "d": "draining"}[text(10)],
	}
}

// lanes returns the lanes that every consumer reads.
var lanes = []queue.LaneClaim{
	{Lane: queue.Lane{Queue: task.DefaultQueue, Type: "job"}},
	{Lane: queue.Lane{Queue: task.DefaultQueue, Type: "rare"}, Limit: 1},
}

// kind names the lanes that an instance reads. All instances read the same lanes, but by two names, so half of them watch
// for themselves.
func kind(id string) string {
	if id == "a" || id == "c" {
		return "x"
	}
	return "y"
}

func (w *world) cycle(c call, a *answer) error {
	r := queue.CycleRequest{Instance: c.id, Gen: c.gen, Seq: c.seq, Want: c.want, Lanes: lanes, Reads: kind(c.id), Workers: w.room.workers, Taken: c.taken}
	for _, x := range c.settle {
		r.Settle = append(r.Settle, w.settlement(c, x))
	}
	reply, err := w.q.Cycle(w.ctx, &r)
	if err != nil {
		return err
	}
	a.cycle = reply
	for _, t := range reply.Claimed {
		a.claims = append(a.claims, claim{t.ID, t.Fence, t.Due.UnixMilli()})
	}
	return nil
}

const (
	keepFor = 1500 * time.Millisecond
	// settledAttempts is the number of attempts in each record that a settlement writes, which tells them from other records.
	settledAttempts = 7
)

func (w *world) settlement(c call, x claim) queue.Settlement {
	t := *w.room.task(x.id)
	t.Attempts = settledAttempts
	s := queue.Settlement{ID: x.id, Fence: x.fence, Outcome: c.outcome, Note: w.settleNote(c, x)}
	switch c.outcome {
	case queue.Kept:
		s.Keep, s.Record = keepFor, queue.Rewrite(&t)
	case queue.Moved:
		s.Lane, s.Due = queue.LaneOf(&t), queue.Again(store.FromMs(x.due)) // handed back
	case queue.Died:
		s.Record = queue.Rewrite(&t)
	}
	return s
}

var words = [...]string{queue.Finished: "done", queue.Kept: "done", queue.Moved: "returned", queue.Died: "dead"}

// settleNote returns the line that the history must have of a settled run.
func (w *world) settleNote(c call, x claim) string {
	_, _, slot := task.ParseSlotID(x.id)
	return w.room.line(slot, fmt.Sprintf("%s %s 1", x.id, words[c.outcome]))
}

// line is what must be noted of a run: that of a slot in the history, and, for an archive, that of another task among the runs.
func (r *room) line(slot bool, text string) string {
	switch {
	case slot:
		return text
	case r.archive:
		return "\t" + text
	}
	return ""
}

// recover gives back the claims that were seen of a dead generation: all of them, or only the first, as if more did not fit
// into one call.
func (w *world) recover(c call, a *answer) error {
	for _, x := range c.looked {
		t := *x.Task
		t.Fail(task.Failure{Attempt: t.Attempt, Error: "lost"})
		t.Overlap = t.Overlap.Begun()
		r := queue.Recovery{
			Claim: x, Lane: queue.LaneOf(&t), Dead: t.Attempts >= t.AttemptsAllowed(), Record: queue.Rewrite(&t), Note: w.room.line(t.Schedule != "", fmt.Sprintf("%s lost %d", t.ID, t.Attempt)),
		}
		if !r.Dead {
			cancelled := r
			cancelled.Dead, r.Asked = true, &cancelled
		}
		a.recoveries = append(a.recoveries, r)
	}
	if c.op == "recover one" {
		a.recoveries = a.recoveries[:1]
	}
	var err error
	_, a.count, err = w.q.Recover(w.ctx, c.orphan, a.recoveries)
	return err
}

// askClient makes a call of a client, which is no instance: it adds tasks and changes schedules.
func (w *world) askClient(ctx context.Context, c call, a *answer) (err error) {
	switch c.op {
	case "enqueue":
		t := *w.room.task(c.task)
		refused, _, err := w.q.Enqueue(ctx, []*task.Task{&t}, true)
		var r *task.Refused
		if err == nil && errors.As(refused[0], &r) {
			a.dup = r.By
		}
		return err
	case "cancel", "forget":
		a.state, err = w.q.Cancel(ctx, c.task, "asked", c.op == "forget")
	case "revive":
		a.count, err = w.q.Revive(ctx, []*task.Task{w.room.task(c.task)})
	case "tidy":
		_, err = w.q.Tidy(ctx, 5*time.Second)
	default:
		return w.change(c, a)
	}
	return err
}
