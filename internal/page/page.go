// Package page reads the tables of the pages in docs/, for tests that hold them to the code.
package page

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Row is one row of a table.
type Row struct {
	Names []string // the texts in backquotes in the first cell
	Cells []string // all cells, the first included
}

var quoted = regexp.MustCompile("`([^`]+)`")

// Names are the texts that stand in backquotes.
func Names(text string) []string {
	var names []string
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// Table reads the tables under a heading, given as "## Events", up to the next heading of any level. It fails the test where
// there is none, or where a row names nothing.
func Table(t testing.TB, file, heading string) []Row {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut("\n"+string(text), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", file, heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	var rows []Row
	head := true
	for line := range strings.Lines(section) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			head = true // a table ends, and the next begins with its head
		case strings.HasPrefix(line, "|---"):
			head = false
		case !head:
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			row := Row{Names(cells[0]), cells}
			if len(row.Names) == 0 {
				t.Errorf("%s, %s: a row names nothing: %s", file, heading, line)
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table under %q", file, heading)
	}
	return rows
}

// Listed are the names of all rows. One that stands there twice fails the test.
func Listed(t testing.TB, rows []Row) []string {
	t.Helper()
	var names []string
	for _, r := range rows {
		for _, n := range r.Names {
			if slices.Contains(names, n) {
				t.Errorf("%q is listed twice", n)
			}
			names = append(names, n)
		}
	}
	return names
}

// Compare fails the test for each thing of the code that a page does not list, and for each that only the page has.
func Compare(t testing.TB, where string, listed, want []string) {
	t.Helper()
	for _, n := range want {
		if !slices.Contains(listed, n) {
			t.Errorf("%s lacks %q", where, n)
		}
	}
	for _, n := range listed {
		if !slices.Contains(want, n) {
			t.Errorf("%s lists %q, which the code does not have", where, n)
		}
	}
}
