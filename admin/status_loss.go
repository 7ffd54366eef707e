package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
)

// lossText says what is gone, and what comes back from where.
func (a *activity) lossText(ctx context.Context, fields map[string]string) (string, error) {
	if fields["kept"] == "0" {
		text := "Redis came back empty: the tasks that waited are gone; the leader restores the schedules that it knows, and those that its release declares"
		state, err := a.q.Regained(ctx)
		if a.past.Archived() && state != queue.FromArchive {
			text += "; it has not restored all those that the archive knows: it tries until the archive answers"
		}
		return text, err
	}
	text := "Redis lost its last writes"
	from, ok1 := msOf(fields["kept"])
	to, ok2 := msOf(fields["known"])
	if ok1 && ok2 {
		text += ", from " + from.UTC().Format(time.RFC3339) + " to " + to.UTC().Format(time.RFC3339)
	}
	return text + ": tasks that were added then are gone, and what ended then may run again", nil
}

// goneText says which schedules the leader could not restore.
func goneText(fields map[string]string) string {
	if fields["schedules"] == "" {
		return "Redis came back empty, and there is no archive: schedules that were applied by hand are gone, unless an instance that had led" +
			" restored them; apply those that are missing again"
	}
	return fmt.Sprintf("%s schedules that Redis lost cannot be restored from the archive: %s; apply them again, or start a release that reads them",
		fields["schedules"], fields["error"])
}

// regained are the schedules that came back from the archive.
type regained struct {
	names []string
	since time.Time
}

func (r *regained) add(e *queue.Event) {
	if e.Fields["by"] != producer.ByArchive {
		return
	}
	if len(r.names) == 0 {
		r.since = e.At
	}
	r.names = append(r.names, e.Fields["schedule"])
}

// mostRegained is how many of them a status names.
const mostRegained = 5

func (r *regained) tell(v *view) {
	n := len(r.names)
	if n == 0 {
		return
	}
	text := "Redis had lost " + wording.Count(int64(n), "schedule", "schedules") + ", restored as the archive had them: " +
		strings.Join(r.names[:min(n, mostRegained)], ", ")
	if n > mostRegained {
		text += ", …"
	}
	v.add(Trouble{Warning: true, Kind: LostWrites, Since: r.since, Text: text, Show: "onbeat schedules list"})
}
