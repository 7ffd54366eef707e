package sqlarchive_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/history"
)

// queries returns the statements of the page, under the heading of three queries.
func queries(t *testing.T) (list []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/archive.md")
	must(t, err)
	_, part, _ := strings.Cut(string(page), "## Three queries\n")
	part, _, _ = strings.Cut(part, "\n## ")
	for _, block := range strings.Split(part, "```sql\n")[1:] {
		query, _, _ := strings.Cut(block, "```")
		list = append(list, query)
	}
	if len(list) != 5 {
		t.Fatalf("%d queries, want three for PostgreSQL and two for SQLite", len(list))
	}
	return list
}

// People paste the queries of the page: each works, and counts no slot as a run that did not run.
func TestArchive_answersTheQueriesOfTheDocs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a := open(t, url, func(o *opening) { o.namespace = "billing" })
		e := ran(now, 0, 0, 1, 2)
		for i := range e.Notes {
			e.Notes[i].Schedule, e.Notes[i].Maker = "nightly-report", "nightly-report"
		}
		e.Notes[0].TaskID = "invoice-42"
		e.Notes[1].Word, e.Notes[1].Error = history.Dead, "exit status 3"
		e.Notes[2].Word, e.Notes[2].Attempt, e.Notes[2].Claimed, e.Notes[2].Took = history.Skipped, 0, time.Time{}, 0
		add(t, a, e)

		list := queries(t)
		fails, late, did := list[0], list[1], list[2]
		if strings.HasPrefix(url, "sqlite:") {
			fails, late = list[3], list[4]
		}
		db := raw(t, url)
		var schedule, last string
		var failures, runs int
		must(t, db.QueryRow(fails).Scan(&schedule, &failures, &runs, &last))
		if schedule != "nightly-report" || failures != 1 || runs != 2 || last == "" {
			t.Errorf("%s: %d failures of %d runs, the last success %q; want 1 of 2", schedule, failures, runs, last)
		}
		var day string
		var lag, took float64
		if rows, err := db.Query(late); err != nil {
			t.Error(err)
		} else {
			runs = 0
			for rows.Next() { // two days, if midnight is between the slots
				var n int
				must(t, rows.Scan(&day, &lag, &took, &n))
				runs += n
			}
			must(t, rows.Err())
			must(t, rows.Close())
		}
		if runs != 2 || lag < 3597 || lag > 3599 || took != 900 {
			t.Errorf("%d runs, late by %v s, taking %v ms; want 2, an hour and 900", runs, lag, took)
		}
		rows, err := db.Query(did)
		must(t, err)
		defer rows.Close()
		for runs = 0; rows.Next(); runs++ { //nolint:revive // counts
		}
		must(t, rows.Err())
		if runs != 1 {
			t.Errorf("%d runs of the task, want 1", runs)
		}
	})
}
