package doctor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

// Schedules that were there before their type had a limit, and lie apart, are named.
func TestExamine_namesSchedulesThatLieApart(t *testing.T) {
	t.Parallel()
	rdb, ns := testredis.Client(t), testredis.Namespace(t)
	limits := func() []Check {
		t.Helper()
		report, err := Examine(t.Context(), Config{Redis: rdb, Namespace: ns, Partitions: 3})
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(report.Checks, func(c Check) bool { return c.Name != "limits" })
	}
	before, err := onbeat.New(rdb, onbeat.Config{Namespace: ns, Partitions: 3})
	if err != nil {
		t.Fatal(err)
	}
	m := split.Map{Partitions: 3}
	var apart, beside []string
	for i := range 8 { // a check names up to five
		name := fmt.Sprintf("s%02d", i)
		if _, err := before.Admin().Schedules.Apply(t.Context(), producer.Schedule{Name: name, Rule: schedule.Every(time.Hour), Task: "few"}); err != nil {
			t.Fatal(err)
		}
		if m.Of(name) == m.Of("few") {
			beside = append(beside, name)
		} else {
			apart = append(apart, name)
		}
	}
	if checks := limits(); len(checks) > 0 {
		t.Errorf("no type has a limit: %+v", checks)
	}
	after, err := onbeat.New(rdb, onbeat.Config{Namespace: ns, Partitions: 3, Limits: map[string]int{"few": 1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := after.Admin().Schedules.Plan(t.Context(), producer.Schedule{Name: beside[0], Rule: schedule.Every(time.Hour), Task: "few"}); err != nil { // notes the limit
		t.Fatal(err)
	}
	var named strings.Builder
	for _, c := range limits() {
		if c.State != Warn {
			t.Errorf("%+v", c)
		}
		named.WriteString(c.Detail)
	}
	for name, want := range map[string]bool{apart[0]: true, apart[len(apart)-1]: true, beside[0]: false} {
		if strings.Contains(named.String(), name+" (few)") != want {
			t.Errorf("%s: named is not %v in %q", name, want, named.String())
		}
	}
	for _, name := range apart {
		if _, err := after.Admin().Schedules.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if checks := limits(); len(checks) != 1 || checks[0].State != OK {
		t.Errorf("all lie where their type does: %+v", checks)
	}
}
