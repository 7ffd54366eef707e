package rig

import (
	"encoding/json"
	"slices"

	"github.com/onbeat/onbeat/task"
)

// AuditLine is the verdict of `onbeat audit --json` about one schedule.
type AuditLine struct {
	Schedule string `json:"schedule"`
	OnTime   int    `json:"on_time"`
	Late     int    `json:"late"`
	Missed   int    `json:"missed"`

	Broken     bool `json:"broken"`
	Unattended bool `json:"unattended"`
}

// WantAuditClean fails if the audit finds a broken promise. It allows overdue slots without an instance, because the test has
// stopped the instances. It returns the verdicts, by schedule.
func (w *World) WantAuditClean() map[string]AuditLine {
	w.Helper()
	code, out, errs := w.Try("audit", "--json", "--since", "2h") // longer than the longest test
	var report struct {
		Schedules []AuditLine `json:"schedules"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		w.Fatalf("audit: exit %d: %v: %s%s", code, err, out, errs)
	}
	unattended := slices.ContainsFunc(report.Schedules, func(l AuditLine) bool { return l.Unattended })
	broken := slices.ContainsFunc(report.Schedules, func(l AuditLine) bool { return l.Broken })
	if broken || code != 0 && !unattended {
		w.Errorf("audit: exit %d: %s", code, out)
	}
	lines := map[string]AuditLine{}
	for _, l := range report.Schedules {
		lines[l.Schedule] = l
	}
	if len(lines) == 0 {
		w.Error("audit: it knows no schedule")
	}
	return lines
}

// WantAuditAgrees is WantAuditClean, and also fails unless the audit counts as many slots run as the recorder saw.
func (w *World) WantAuditAgrees(names ...string) map[string]AuditLine {
	w.Helper()
	lines := w.WantAuditClean()
	for _, name := range names {
		slots := map[string]bool{}
		for _, a := range w.Of(name) {
			if _, _, ok := task.ParseSlotID(a.ID); ok {
				slots[a.ID] = true
			}
		}
		if got := lines[name].OnTime + lines[name].Late; got != len(slots) {
			w.Errorf("audit says that %d slots of %s ran, the recorder saw %d: %+v", got, name, len(slots), lines[name])
		}
	}
	return lines
}
