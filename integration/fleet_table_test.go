package integration

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// soak reports whether ONBEAT_SOAK=1 asks for the long scenarios in full.
func soak() bool { return os.Getenv("ONBEAT_SOAK") == "1" }

// size is how many of something a scenario has: few in CI, all of them in a soak.
func size(few, all int) int {
	if soak() {
		return all
	}
	return few
}

// figures are what a scenario is judged by.
type figures struct {
	slots, missed, duplicated, offGrid int

	// repeated is how many slots took a later attempt because a run was lost with its instance: no duplicates.
	repeated int

	// gap is the longest time between two neighbouring arrivals of one schedule, a repeated run not counted.
	// p50 and p99 are of the time from slot to arrival.
	gap, p50, p99 time.Duration
}

func (f figures) cells() []string {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
	n := func(i int) string { return fmt.Sprint(i) }
	return []string{n(f.slots), n(f.missed), n(f.duplicated), n(f.offGrid), n(f.repeated), ms(f.gap), ms(f.p50), ms(f.p99)}
}

var columns = []string{"scenario", "slots", "missed", "duplicated", "off grid", "repeated", "longest gap", "lag p50", "lag p99", "besides"}

// row logs the result of a scenario, and what there is to say besides. If ONBEAT_SOAK_TABLE names a file, it adds a row
// to the Markdown table there, and begins the table if the file is empty.
func (w *world) row(scenario string, f figures, besides ...string) {
	w.Helper()
	cells := append(append([]string{scenario}, f.cells()...), strings.Join(besides, "; "))
	said := make([]string, len(cells))
	for i, cell := range cells {
		said[i] = columns[i] + " " + cell
	}
	w.Log(strings.Join(said, ", "))
	path := os.Getenv("ONBEAT_SOAK_TABLE")
	if path == "" {
		return
	}
	if w.Failed() {
		cells[0] += " (FAILED)"
	}
	if err := addRow(path, cells); err != nil {
		w.Errorf("ONBEAT_SOAK_TABLE: %v", err)
	}
}

// addRow appends with one write, so that rows of several tests do not mix.
func addRow(path string, cells []string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	line := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
	text := line(cells)
	if info, err := file.Stat(); err == nil && info.Size() == 0 {
		text = line(columns) + "|---" + strings.Repeat("|--:", len(columns)-2) + "|---|\n" + text
	}
	_, err = file.WriteString(text)
	return err
}
