package telemetry_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/archive/sqlarchive"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/page"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
	"github.com/onbeat/onbeat/telemetry"
)

// TestMetrics_areThoseOfThePage holds docs/metrics.md to what a registry gathers.
func TestMetrics_areThoseOfThePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Mini(t).Dialed(t), telemetry.Options{}, func(c *onbeat.Config) {
		c.Archive = sqlarchive.Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "archive.db")}
	})
	t.Cleanup(func() { w.must(w.Close()) })
	w.must(w.Handle("beat", handlers.Func(func(context.Context, *task.Task) error { return nil })))
	w.must(w.Schedule("beat", schedule.Every(time.Hour), "beat", nil))
	w.start()
	w.metrics.Notified("oncall", "sent")
	w.metrics.SecretUnreadable("token", "ci")
	w.eventually(`onbeat_notifications_total{result="sent",target="oncall"}`, 1)
	w.eventually(`onbeat_notifications_total{result="gave_up",target="oncall"}`, 0) // there before the first one, which a rate needs
	w.eventually(`onbeat_runs_total{outcome="done",type="beat"}`, 1)
	w.eventually(`onbeat_slots_total{fate="done"}`, 1)
	w.eventually("onbeat_archive_behind_entries", 0)
	rows := map[string]page.Row{}
	table := page.Table(t, "../docs/metrics.md", "## The table")
	for _, row := range table {
		rows[row.Names[0]] = row
	}
	families, err := w.reg.Gather()
	w.must(err)
	var names []string
	for _, f := range families {
		names = append(names, f.GetName())
		row, ok := rows[f.GetName()]
		if !ok {
			continue // Compare says so
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		listed := slices.Sorted(slices.Values(page.Names(row.Cells[2])))
		if kind := strings.ToLower(f.GetType().String()); row.Cells[1] != kind || !slices.Equal(listed, labels) {
			t.Errorf("%s is a %s with labels %q, and listed as a %s with %q", f.GetName(), kind, labels, row.Cells[1], listed)
		}
		if f.GetHelp() == "" || strings.HasSuffix(f.GetName(), "_seconds") != (row.Cells[3] == "seconds") {
			t.Errorf("%s: help %q, unit %q", f.GetName(), f.GetHelp(), row.Cells[3])
		}
		if h := f.GetMetric()[0].GetHistogram(); h != nil && (h.Schema == nil || len(h.GetBucket()) < 5) {
			t.Errorf("%s is not both a native and a classic histogram", f.GetName())
		}
		if len(row.Cells) != 7 || row.Cells[4] != "this process" && row.Cells[4] != "namespace" {
			t.Errorf("%s: %q", f.GetName(), row.Cells)
		}
	}
	page.Compare(t, "docs/metrics.md", page.Listed(t, table), names)
}
