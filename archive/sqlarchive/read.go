package sqlarchive

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/internal/history"
)

// pageRows is how many rows one call reads.
const pageRows = 1000

// mostRuns is how many runs of a task are read.
const mostRuns = 1000

// History implements [archive.Archive]. It reads a page at a time.
func (a *store) History(ctx context.Context, since time.Time, fn func(history.Entry) error) error {
	return a.HistoryOf(ctx, "", since, fn)
}

// HistoryOf implements [archive.Archive].
func (a *store) HistoryOf(ctx context.Context, schedule string, since time.Time, fn func(history.Entry) error) error {
	from := place{noted: ofMs(0), entry: -1}
	if !since.IsZero() {
		from.noted = at(since)
	}
	var stop error
	err := a.entries(ctx, false, schedule, from, func(e history.Entry) bool {
		stop = fn(e)
		return stop == nil
	})
	if err != nil {
		return fmt.Errorf("read the archived history: %w", a.fault(ctx, err))
	}
	return stop
}

// HistoryBefore implements [archive.Archive].
func (a *store) HistoryBefore(ctx context.Context, id, schedule string, fn func(history.Entry) bool) error {
	from := place{noted: ofMs(lastMs), entry: math.MaxInt64, line: math.MaxInt32}
	if id != "" {
		from = placeOf(id)
		from.line = -1
	}
	if err := a.entries(ctx, true, schedule, from, fn); err != nil {
		return fmt.Errorf("read the archived history: %w", a.fault(ctx, err))
	}
	return nil
}

// entries calls fn with the entries before or behind a place, until fn returns false.
func (a *store) entries(ctx context.Context, back bool, schedule string, from place, fn func(history.Entry) bool) error {
	sources := []*pages{
		{a: a, table: runs, tie: "task", make: func() noted { return &run{} }},
		{a: a, table: fates, tie: "schedule", make: func() noted { return &fate{} }},
	}
	for _, p := range sources {
		p.back, p.schedule, p.last = back, schedule, from
	}
	for {
		e, err := next(ctx, sources, back)
		if err != nil || len(e.Notes) == 0 || !fn(e) {
			return err
		}
	}
}

// next returns the next entry: all notes that are at its place, from both tables. An entry without notes is the end.
func next(ctx context.Context, sources []*pages, back bool) (e history.Entry, err error) {
	var at place
	for {
		var first *pages
		for _, p := range sources {
			if err := p.fill(ctx); err != nil {
				return e, err
			}
			if len(p.rows) > 0 && (first == nil || p.before(first)) {
				first = p
			}
		}
		if first == nil || len(e.Notes) > 0 && first.rows[0].where().compare(at) != 0 {
			break
		}
		r := first.rows[0]
		first.rows = first.rows[1:]
		at = r.where()
		e.Notes = append(e.Notes, r.note())
	}
	if len(e.Notes) > 0 {
		e.ID, e.At = at.id(), at.at()
	}
	if back {
		slices.Reverse(e.Notes)
	}
	return e, nil
}

// noted is a row that is a note of the history.
type noted interface {
	row
	where() place
	note() history.Note
}

// pages reads the notes in a table, in the order of the history or against it.
type pages struct {
	a        *store
	table    *table
	tie      string // the column that orders notes at one place, of which there are two if a failover took an entry back
	make     func() noted
	back     bool
	schedule string

	last place
	tied string
	rows []noted
	end  bool
}

// before reports whether the next row of p comes before that of q.
func (p *pages) before(q *pages) bool {
	x, y := p.rows[0].where(), q.rows[0].where()
	order := x.compare(y)
	if order == 0 {
		order = int(x.line - y.line)
	}
	return order < 0 != p.back && order != 0
}

// fill reads the next page, if the last one is used up.
func (p *pages) fill(ctx context.Context) error {
	if len(p.rows) > 0 || p.end {
		return nil
	}
	statement, args := p.statement()
	err := p.a.query(ctx, func(rows *sql.Rows) error {
		r := p.make()
		p.rows = append(p.rows, r)
		return rows.Scan(append(r.values(), &p.tied)...)
	}, statement, args...)
	if err != nil {
		return err
	}
	p.end = len(p.rows) < pageRows
	if len(p.rows) > 0 {
		p.last = p.rows[len(p.rows)-1].where()
	}
	return nil
}

func (p *pages) statement() (string, []any) {
	order, than := "", ">"
	if p.back {
		order, than = " desc", "<"
	}
	args := []any{p.a.namespace, p.a.engine.time(p.last.noted), p.last.entry, p.last.line, p.tied}
	where := "namespace = $1 and (noted, entry, line, " + p.tie + ") " + than + " ($2, $3, $4, $5) and schedule <> ''"
	if p.schedule != "" {
		args = append(args, p.schedule)
		where += " and schedule = $" + strconv.Itoa(len(args))
	}
	if p.table == runs { // the days that can have such rows: see longestRun
		begun, bound := ofMs(p.last.noted.UnixMilli()-longestRun.Milliseconds()), " and begun >= $"
		if p.back {
			begun, bound = ofMs(p.last.noted.UnixMilli()+day.Milliseconds()), " and begun <= $"
		}
		args = append(args, p.a.engine.time(begun))
		where += bound + strconv.Itoa(len(args))
	}
	return "select " + p.table.list() + ", " + p.tie + " from " + p.table.name + " where " + where +
		" order by noted" + order + ", entry" + order + ", line" + order + ", " + p.tie + order + " limit " + strconv.Itoa(pageRows), args
}

// Runs implements [archive.Archive].
func (a *store) Runs(ctx context.Context, taskID string) ([]history.Note, error) {
	var list []history.Note
	err := a.query(ctx, func(rows *sql.Rows) error {
		var r run
		if err := rows.Scan(r.values()...); err != nil {
			return err
		}
		list = append(list, r.note())
		return nil
	}, "select "+runs.list()+" from onbeat_runs where namespace = $1 and task = $2 order by noted desc, entry desc, line desc limit "+
		strconv.Itoa(mostRuns), a.namespace, name(taskID))
	if err != nil {
		return nil, fmt.Errorf("read the archived runs of task %q: %w", taskID, a.fault(ctx, err))
	}
	slices.Reverse(list)
	return list, nil
}
