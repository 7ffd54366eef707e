package admin

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/producer"
)

// archiveTime is how long a task waits for what the archive knows of it, where Redis has the task itself.
const archiveTime = 2 * time.Second

// remember adds what the archive knows of the runs of a task that Redis has. An archive that is away does not hide the task.
func (t *tasks) remember(ctx context.Context, out *Task) {
	ctx, done := context.WithTimeout(ctx, archiveTime)
	defer done()
	notes, err := t.past.Runs(ctx, out.ID)
	if err != nil {
		out.RunsUnread = err.Error()
		return
	}
	out.Runs = runsOf(notes)
}

// forgotten returns a task as the archive knows it, or the error with which Redis did not find it.
func (t *tasks) forgotten(ctx context.Context, id string, unknown error) (Task, error) {
	notes, err := t.past.Runs(ctx, id)
	if err != nil {
		return Task{}, err
	}
	if len(notes) == 0 {
		return Task{}, unknown
	}
	last := &notes[len(notes)-1]
	return Task{
		ID: id, Type: last.Type, State: TaskGone, Queue: last.Queue, Due: last.Due, At: last.At, Schedule: last.Maker, Slot: last.Slot,
		Attempts: last.Attempt, Runs: runsOf(notes),
	}, nil
}

func runsOf(notes []history.Note) []Run {
	list := make([]Run, len(notes))
	for i := range notes {
		r := producer.RunOf(&notes[i])
		list[i] = runOf(&r)
	}
	return list
}
