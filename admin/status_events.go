package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/wording"
)

// lookAtEvents tells what was lost or refused lately.
func (a *activity) lookAtEvents(ctx context.Context, v *view) error {
	events, err := a.q.Events(ctx, v.now.Add(-lately), queue.MaxEvents)
	said := map[string]*Trouble{}
	var retired []string
	var back regained
	for _, e := range events {
		line := Trouble{Since: e.At}
		switch e.Kind {
		case "lost writes":
			text, err := a.lossText(ctx, e.Fields)
			if err != nil {
				return err
			}
			line.Kind, line.Text = LostWrites, text
			line.Show, line.at = "onbeat audit", e.ID // each loss is a line
		case "schedules lost":
			line.Kind, line.Text, line.Show = LostWrites, goneText(e.Fields), "onbeat schedules list"
		case "schedule restored":
			back.add(&e)
			continue
		case "outbox refused", "outbox stuck":
			line.Kind, line.Show = Outbox, "onbeat doctor"
			line.Text = "rows of the outbox were refused, and stay in its table: " + e.Fields["error"]
			if e.Kind == "outbox stuck" {
				line.Text = "rows of the outbox stay for now: " + e.Fields["error"]
			}
		case "archive lost":
			line.Kind, line.Show, line.Warning = Archived, "onbeat events", true // nothing can be done now
			line.Text = "Redis no longer had all entries that were to be archived next: " + e.Fields["stream"]
		case "cannot decrypt":
			if v.now.Sub(e.At) > keyForgotten {
				continue
			}
			line.Kind, line.Name, line.Show = NoKey, e.Fields["key"], "onbeat doctor"
			line.Text = "tasks wait that " + e.Fields["instance"] + " cannot decrypt: it needs the key, or has another one under that ID"
		case "claims paused":
			v.pausedBy(&e)
			continue
		case "schedule retired":
			retired = append(retired, e.Fields["schedule"])
			continue
		default:
			continue
		}
		if said[line.Text+line.at] == nil {
			said[line.Text+line.at] = &line
			v.add(line)
		}
	}
	back.tell(v)
	if err == nil {
		err = a.lookAtIncidents(ctx, v, events)
	}
	if err != nil || len(retired) == 0 {
		return err
	}
	gone, err := a.q.Retired(ctx, retired) // those that have come back are not
	v.tellRetired(gone)
	return err
}

// mostRetired is how many schedules the line of a release names.
const mostRetired = 5

// tellRetired tells what each release does not declare.
func (v *view) tellRetired(gone map[string]queue.Retired) {
	of := map[string][]queue.Retired{}
	for _, r := range gone {
		of[r.By] = append(of[r.By], r)
	}
	for release, list := range of {
		slices.SortFunc(list, func(a, b queue.Retired) int { return strings.Compare(a.Name, b.Name) })
		line := Trouble{Warning: true, Kind: string(Retired), Name: release, Show: "onbeat schedules list --retired"}
		var names []string
		for i, r := range list {
			line.Since = earlier(line.Since, r.At)
			if i < mostRetired {
				names = append(names, r.Name)
			}
		}
		line.Text = fmt.Sprintf("%s retired %s: %s", cmp.Or(release, "the release that leads"), wording.Count(int64(len(list)), "schedule", "schedules"), strings.Join(names, ", "))
		if more := len(list) - len(names); more > 0 {
			line.Text += fmt.Sprintf(" and %d more", more)
		}
		v.add(line)
	}
}

// pausedBy adds since when and by whom all instances are paused. A later event of a pause counts more.
func (v *view) pausedBy(e *queue.Event) {
	for i := range v.Trouble {
		if t := &v.Trouble[i]; t.Kind == string(Paused) && t.Name == "" {
			t.Since = e.At
			if by := e.Fields["by"]; by != "" {
				t.Text = allPaused(v.list.PausedUntil, by, v.list.PauseReason)
			}
		}
	}
}
