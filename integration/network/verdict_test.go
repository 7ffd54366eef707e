package network

import (
	"encoding/json"
	"os"
	"strings"
)

// wantSteady judges the schedules by the recorder and by the audit, which have to agree; says what came out; and, if
// ONBEAT_SOAK_TABLE names a file, adds a row to the table there.
func (w *world) wantSteady(scenario string) judged {
	w.Helper()
	code, out, errs := w.run("audit", "--json")
	var report struct {
		Schedules []struct {
			Schedule string `json:"schedule"`
			OnTime   int    `json:"on_time"`
			Late     int    `json:"late"`
			Missed   int    `json:"missed"`
		} `json:"schedules"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 || len(report.Schedules) != 2 {
		w.Fatalf("audit: exit %d: %v: %s%s", code, err, out, errs)
	}
	var all judged
	for _, line := range report.Schedules {
		j := judge(w.T, w.rec.of(line.Schedule))
		if j.missed > 0 || j.duplicated > 0 || j.offGrid > 0 {
			w.Errorf("%s: %+v: want none missed, duplicated or off the grid", line.Schedule, j)
		}
		if line.OnTime+line.Late != j.slots || line.Missed > 0 {
			w.Errorf("audit says that %d slots of %s ran and %d were missed, the recorder saw %d", line.OnTime+line.Late, line.Schedule, line.Missed, j.slots)
		}
		all.add(j)
	}
	w.Logf("%+v", all)
	w.row(scenario, all)
	return all
}

// add takes in another schedule: sums of the counts, the larger of the times.
func (j *judged) add(o judged) {
	j.slots += o.slots
	j.missed += o.missed
	j.duplicated += o.duplicated
	j.offGrid += o.offGrid
	j.repeated += o.repeated
	j.gap, j.p50, j.p99, j.worst = max(j.gap, o.gap), max(j.p50, o.p50), max(j.p99, o.p99), max(j.worst, o.worst)
}

func (w *world) row(scenario string, j judged) {
	w.Helper()
	path := os.Getenv("ONBEAT_SOAK_TABLE")
	if path == "" {
		return
	}
	if w.Failed() {
		scenario += " (FAILED)"
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		defer file.Close()
		_, err = file.WriteString("| " + strings.Join(append(append([]string{scenario}, j.cells()...), ""), " | ") + " |\n")
	}
	if err != nil {
		w.Errorf("ONBEAT_SOAK_TABLE: %v", err)
	}
}
