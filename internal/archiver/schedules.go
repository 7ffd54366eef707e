package archiver

import (
	"context"
	"slices"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
)

// readSchedules reads the revisions of schedules that were changed. Redis has the last 50 of each; of those that are archived already
// the archive takes no second one.
func (t *term) readSchedules(ctx context.Context, f *found) error {
	t.reached = max(t.reached, t.at.Schedules)
	from := t.at.Schedules
	if f.history.back { // a failover may have given versions a second time
		from = 0
	}
	names, next, err := t.q.ChangedSchedules(ctx, from, mostSchedules)
	if err != nil {
		return err
	}
	f.schedules, f.moreSchedules = next, len(names) >= mostSchedules
	lists, err := t.q.RevisionsOf(ctx, names)
	for i, list := range lists {
		t.missing(list, f)
		for _, r := range slices.Backward(list) {
			f.revisions = append(f.revisions, archive.Revision{
				Schedule: names[i], Number: r.Number, At: r.At, What: r.What, Who: r.Who, Definition: r.Definition,
			})
		}
	}
	if err != nil || len(names) == 0 {
		return err
	}
	return t.readChanged(ctx, names, lists, f)
}

// readChanged reads how schedules are now. A schedule may be missing in Redis without a revision that says that it left.
// Then Redis lost it in between, and it stays in the archive.
func (t *term) readChanged(ctx context.Context, names []string, said [][]queue.Revision, f *found) error {
	list, err := t.q.SchedulesNamed(ctx, names)
	if err != nil {
		return err
	}
	for i, st := range list {
		left := len(said[i]) > 0 && (said[i][0].What == string(history.Deleted) || said[i][0].What == string(history.Retired))
		if !st.Half() && (!st.Absent() || left) {
			f.changed = append(f.changed, archive.Schedule{Name: st.Name, Definition: st.Definition, Last: st.Last, Pause: st.Pause})
		}
	}
	return nil
}

// missing notes a loss if revisions of a schedule came and went since the last reading. Each names the one before it, and those up to
// the highest position are archived: after a failover the position goes down, to read them anew.
func (t *term) missing(list []queue.Revision, f *found) {
	for i, r := range list {
		there := i+1 < len(list) && list[i+1].Number == r.Before
		if there || r.Before <= t.reached || !f.follows && !f.anew {
			continue
		}
		l := f.lost
		if l == nil {
			l = &archive.Loss{From: store.FromMs(t.reached), To: r.At}
			if f.anew {
				l.From = t.since
			}
			f.lost = l
		}
		if r.At.After(l.To) {
			l.To = r.At
		}
		if l.To.Before(l.From) { // versions of quick changes run ahead of the clock
			l.From = l.To
		}
	}
}
