package rig

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/internal/trial"
)

var columns = []string{"scenario", "slots", "missed", "duplicated", "off grid", "repeated", "longest gap", "lag p50", "lag p99", "besides"}

func cellsOf(r *trial.Result) []string {
	if r == nil { // a scenario without a beat
		return slices.Repeat([]string{"-"}, len(columns)-2)
	}
	ms := func(ms float64) string { return fmt.Sprintf("%.1f ms", ms) }
	n := func(i int) string { return fmt.Sprint(i) }
	return []string{n(r.Slots), n(r.Missed), n(r.Duplicated), n(r.OffGrid), n(r.Repeated), ms(r.Gap), ms(r.P50), ms(r.P99)}
}

// Row logs the result of a scenario, nil if it has no beat, with a remark. If ONBEAT_SOAK_TABLE names a file, Row adds a row to the Markdown table
// there, and begins the table if the file is empty.
func (w *World) Row(scenario string, r *trial.Result, besides ...string) {
	w.Helper()
	cells := append(append([]string{scenario}, cellsOf(r)...), strings.Join(besides, "; "))
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
	line := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
	text := line(cells)
	if info, err := file.Stat(); err == nil && info.Size() == 0 {
		text = line(columns) + "|---" + strings.Repeat("|--:", len(columns)-2) + "|---|\n" + text
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}
