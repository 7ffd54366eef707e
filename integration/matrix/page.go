package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// mark is the line of the page below which it is written anew.
const mark = "<!-- make matrix writes what follows -->\n"

// writePage writes the tables into a page. A row that this run has not filled stays as the page has it.
func writePage(path string, tables []*table) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, was, ok := strings.Cut(string(old), mark)
	if !ok {
		return fmt.Errorf("%s has no line %q", path, mark)
	}
	page := head + mark
	for _, t := range tables {
		page += t.markdown(was)
	}
	return os.WriteFile(path, []byte(page), 0o644)
}

// markdown writes the table as the page has it.
func (t *table) markdown(was string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n| %s | run | %s |\n|---|---%s|\n", t.heading, t.first, strings.Join(t.columns, " | "), strings.Repeat("|---", len(t.columns)))
	for _, r := range t.rows {
		name := "| `" + r.name + "` | "
		line := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(name) + ".*\n").FindString(was)
		if cells := r.cells; len(cells) > 0 || line == "" {
			if len(cells) == 0 {
				cells = []string{notRun + "not yet"}
			}
			for len(cells) < len(t.columns)+1 {
				cells = append(cells, "-")
			}
			line = name + strings.Join(cells, " | ") + " |\n"
		}
		b.WriteString(line)
	}
	return b.String()
}
