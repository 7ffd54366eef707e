package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/page"
)

const supportPage = "../../docs/support.md"

// The page has the rows and the columns that a run has, and each of its cells holds or says why it was not run.
func TestPage_hasTheCellsOfARun(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(supportPage)
	if err != nil {
		t.Fatal(err)
	}
	m := &matrix{ctx: t.Context(), root: "../.."}
	for _, table := range m.tables("") {
		head := "| " + table.first + " | run | " + strings.Join(table.columns, " | ") + " |"
		if !bytes.Contains(text, []byte("\n## "+table.heading+"\n\n"+head+"\n")) {
			t.Errorf("it has no table %q with the head %s", table.heading, head)
		}
		var got []string
		for _, r := range page.Table(t, supportPage, "## "+table.heading) {
			got = append(got, r.Names[0])
			if len(r.Cells) != len(table.columns)+2 {
				t.Errorf("%s has %d cells", r.Names[0], len(r.Cells))
				continue
			}
			ran := !strings.HasPrefix(r.Cells[1], notRun)
			for i, cell := range r.Cells[2:] {
				if ok := cell == holds || strings.HasPrefix(cell, notRun); ok != ran && (ran || cell != "-") {
					t.Errorf("%s, %s: %s", r.Names[0], table.columns[i], cell)
				}
			}
		}
		var want []string
		for _, r := range table.rows {
			want = append(want, r.name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the rows %q, and a run %q", table.heading, got, want)
		}
	}
}

var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// Each part has tests: a name that changed would leave a cell with nothing to show.
func TestSets_haveTests(t *testing.T) {
	t.Parallel()
	for _, s := range append(slices.Clone(redisSets), postgresSets...) {
		for _, p := range s.parts {
			files, err := filepath.Glob(filepath.Join("../..", p.folder, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			run, n := regexp.MustCompile(p.run), 0
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range testFunc.FindAllSubmatch(text, -1) {
					if run.Match(m[1]) {
						n++
					}
				}
			}
			if n == 0 {
				t.Errorf("%s: no test of %s matches %s", s.name, p.folder, p.run)
			}
		}
	}
}

func TestSeries_areTheClosest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, version, want string }{
		{"Redis", "6.2.16", "Redis 6.2"}, {"Redis", "8.0.2", "Redis 8.0"}, {"Redis", "8.6.3", "Redis 8"}, {"Redis", "6.0.16", ""},
		{"Valkey", "9.1.2", "Valkey 9"}, {"Valkey", "7.2.7", "Valkey 7.2"}, {"PostgreSQL", "18.4", ""},
	} {
		if got := seriesOf(program{kind: c.kind, version: c.version}, redisSeries); got != c.want {
			t.Errorf("%s %s is of %q, want %q", c.kind, c.version, got, c.want)
		}
	}
	if compare("8.10.1", "8.6.3") <= 0 || compare("7.0.15", "7.0.9") <= 0 || compare("1", "") <= 0 {
		t.Error("versions are compared as texts")
	}
}

// A part whose tests fail, are skipped or are not there does not hold.
func TestVerdict(t *testing.T) {
	t.Parallel()
	m := &matrix{ctx: t.Context(), out: &bytes.Buffer{}, work: t.TempDir()}
	p := part{"x", "^TestA"}
	for out, want := range map[string]string{
		"--- PASS: TestA (0s)\nPASS":                          holds,
		"--- SKIP: TestA (0s)\nPASS":                          notRun + "TestA was skipped",
		"testing: warning: no tests to run\nPASS":             fails + ": x",
		"--- PASS: TestA (0s)\n--- SKIP: TestAB (0s)\nPASS\n": notRun + "TestAB was skipped",
	} {
		if got := m.verdict("a row", p, []byte(out), nil); got != want {
			t.Errorf("%q: %s, want %s", out, got, want)
		}
	}
	if got := m.verdict("a row", p, []byte("--- FAIL: TestA"), os.ErrInvalid); got != fails+": x" {
		t.Error(got)
	}
	if text, err := os.ReadFile(filepath.Join(m.work, "a_row_x.log")); err != nil || !strings.Contains(string(text), "--- FAIL: TestA") {
		t.Errorf("what failed is not kept: %s, %v", text, err)
	}
}

// A run of some rows leaves the others as they are.
func TestWritePage_keepsTheOtherRows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("# Support\n\n"+mark), 0o644); err != nil {
		t.Fatal(err)
	}
	made := func(first, second []string) {
		t.Helper()
		list := []*table{{heading: "Servers", first: "server", columns: []string{"x"}, rows: []row{{name: "A 1", cells: first}, {name: "A 10", cells: second}}}}
		if err := writePage(path, list); err != nil {
			t.Fatal(err)
		}
	}
	made([]string{"1.2", holds}, nil)
	made(nil, []string{notRun + "it is away"})
	var got [][]string
	for _, r := range page.Table(t, path, "## Servers") {
		got = append(got, r.Cells)
	}
	want := [][]string{{"`A 1`", "1.2", holds}, {"`A 10`", notRun + "it is away", "-"}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %q, want %q", got, want)
	}
}
