package main

import "strings"

// The words of a cell. A cell that was not run says why.
const (
	holds  = "holds"
	fails  = "FAILS"
	notRun = "not run: "
)

// A table has a row for each server, Go or system that is supported, and a column for each thing that is shown there.
type table struct {
	heading string
	first   string // the kind of its rows
	columns []string
	rows    []row
}

type row struct {
	name string
	// find returns the version to run, or why there is none here.
	find func() (version string, why error)
	// run returns the cell of a column.
	run func(column string) string

	cells []string // the version and the day, and the cell of each column; or why the row was not run
}

func (r *row) failed() bool {
	for _, c := range r.cells {
		if strings.HasPrefix(c, fails) {
			return true
		}
	}
	return false
}

func (m *matrix) tables(given string) []*table {
	return []*table{m.redis(given), m.postgres(given), m.goVersions(), m.systems()}
}

func names(sets []set) (list []string) {
	for _, s := range sets {
		list = append(list, s.name)
	}
	return list
}
