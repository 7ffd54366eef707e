package sqlarchive

import (
	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
)

var (
	events    = newTable("onbeat_events", "at entry kind fields")
	revisions = newTable("onbeat_revisions", "schedule revision at what who definition")
	losses    = newTable("onbeat_losses", "since until stream entries")
	schedules = newTable("onbeat_schedules", "schedule definition last pause")
)

// event is a row of onbeat_events.
type event struct {
	at     moment
	entry  int64
	kind   string
	fields object
}

func (e *event) values() []any { return []any{&e.at, &e.entry, &e.kind, &e.fields} }

func eventsOf(list []archive.Event) []row {
	rows := make([]row, len(list))
	for i, e := range list {
		p := placeOf(e.ID)
		fields := make(object, len(e.Fields))
		for k, v := range e.Fields {
			fields[text(k)] = text(v)
		}
		rows[i] = &event{at: p.noted, entry: p.entry, kind: name(e.Kind), fields: fields}
	}
	return rows
}

func (e *event) event() archive.Event {
	id := place{noted: e.at, entry: e.entry}.id()
	return archive.Event{ID: id, At: history.At(id), Kind: e.kind, Fields: e.fields}
}

// revision is a row of onbeat_revisions.
type revision struct {
	schedule  string
	number    int64
	at        moment
	what, who string
	says      string
}

func (r *revision) values() []any {
	return []any{&r.schedule, &r.number, &r.at, &r.what, &r.who, &r.says}
}

func revisionsOf(list []archive.Revision) []row {
	rows := make([]row, len(list))
	for i, r := range list {
		rows[i] = &revision{schedule: name(r.Schedule), number: r.Number, at: at(r.At), what: text(r.What), who: text(r.Who), says: whole(r.Definition)}
	}
	return rows
}

func (r *revision) revision() archive.Revision {
	return archive.Revision{Schedule: r.schedule, Number: r.number, At: r.at.Time, What: r.what, Who: r.who, Definition: r.says}
}

// loss is a row of onbeat_losses.
type loss struct {
	since, until moment
	stream       string
	entries      number
}

func (l *loss) values() []any { return []any{&l.since, &l.until, &l.stream, &l.entries} }

func lossesOf(list []archive.Loss) []row {
	rows := make([]row, len(list))
	for i, l := range list {
		rows[i] = &loss{since: ofMs(l.From.UnixMilli()), until: ofMs(l.To.UnixMilli()), stream: name(l.Stream), entries: number(l.Entries)}
	}
	return rows
}

func (l *loss) loss() archive.Loss {
	return archive.Loss{From: l.since.Time, To: l.until.Time, Stream: l.stream, Entries: int64(l.entries)}
}

// kept is a row of onbeat_schedules.
type kept archive.Schedule

func (k *kept) values() []any { return []any{&k.Name, &k.Definition, &k.Last, &k.Pause} }

func keptOf(list []archive.Schedule) (rows []row) {
	for _, s := range list {
		if s.Definition != "" {
			rows = append(rows, &kept{name(s.Name), whole(s.Definition), text(s.Last), text(s.Pause)})
		}
	}
	return rows
}
