package integration

import (
	"encoding/json"
	"strings"

	"github.com/onbeat/onbeat/task"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

// auditLine is what `onbeat audit --json` says of one schedule.
type auditLine struct {
	Schedule   string `json:"schedule"`
	OnTime     int    `json:"on_time"`
	Late       int    `json:"late"`
	Missed     int    `json:"missed"`
	Lost       int    `json:"lost"`
	Duplicated int    `json:"duplicated"`
	Early      int    `json:"early"`
	OffGrid    int    `json:"off_grid"`
}

func (w *world) audit() (code int, lines map[string]auditLine) {
	w.Helper()
	code, out, errs := w.run("", "audit", "--json")
	var report struct {
		Schedules []auditLine `json:"schedules"`
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		w.Fatalf("audit: exit %d: %v: %s%s", code, err, out, errs)
	}
	lines = map[string]auditLine{}
	for _, l := range report.Schedules {
		lines[l.Schedule] = l
	}
	return code, lines
}

// wantAuditClean fails if the audit says that a promise broke.
func (w *world) wantAuditClean() {
	w.Helper()
	code, lines := w.audit()
	if code != 0 {
		w.Errorf("audit: exit %d: %+v", code, lines)
	}
	if len(lines) == 0 {
		w.Error("audit: it knows no schedule")
	}
}

// wantAuditAgrees fails unless the audit counts as many slots run as the recorder saw.
func (w *world) wantAuditAgrees(names ...string) {
	w.Helper()
	w.wantAuditClean()
	_, lines := w.audit()
	for _, name := range names {
		slots := map[string]bool{}
		for _, a := range w.rec.of(name) {
			if _, _, ok := task.ParseSlotID(a.id); ok {
				slots[a.id] = true
			}
		}
		if got := lines[name].OnTime + lines[name].Late; got != len(slots) {
			w.Errorf("audit says that %d slots of %s ran, the recorder saw %d: %+v", got, name, len(slots), lines[name])
		}
	}
}
