package config

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/page"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// fieldsBelow are the fields that a file may have below a path: those with a value of their own, and those that only hold others.
func fieldsBelow(t reflect.Type, path string) (values, holders []string) {
	for _, f := range targetsOf(reflect.New(t).Elem()) {
		name, inner := below(path, f.name), f.v.Type()
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() != reflect.Struct {
			values = append(values, name)
			continue
		}
		more, within := fieldsBelow(inner, name)
		values, holders = append(values, more...), append(append(holders, name), within...)
	}
	return values, holders
}

func TestReference_listsEachField(t *testing.T) {
	t.Parallel()
	for heading, typ := range map[string]reflect.Type{
		"## Config":             reflect.TypeFor[settings](),
		"### Tokens of the API": reflect.TypeFor[tokenSettings](), "### Notifications": reflect.TypeFor[notifySettings](),
	} {
		values, holders := fieldsBelow(typ, "")
		listed := page.Listed(t, page.Table(t, "../../../../docs/reference.md", heading))
		listed = slices.DeleteFunc(listed, func(name string) bool { return slices.Contains(holders, name) })
		page.Compare(t, heading, listed, values)
	}
}

// The table of schedules is that of [producer.Fields].
func TestReference_saysOfSchedulesWhatTheirFieldsSay(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	for _, f := range producer.Fields() {
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", f.Name, f.Default, f.Doc)
	}
	text, err := os.ReadFile("../../../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### Schedules\n")
	_, table, _ := strings.Cut(section, "|---|---|---|\n")
	if table, _, _ = strings.Cut(table, "\n\n"); table+"\n" != want.String() {
		t.Errorf("the table in docs/reference.md must be\n%s", want.String())
	}
}

// A schedule as the API shows it is an entry of the file, field for field.
func TestSchedules_areReadAsTheAPIShowsThem(t *testing.T) {
	t.Parallel()
	want := producer.Schedule{
		Name: "s", Task: "t", Payload: []byte(`{"a":[1,null,"x"]}`), Heartbeat: &producer.Heartbeat{URL: "https://x.example/u", Start: "https://x.example/s"}, Secret: []string{"a"}, Queue: "q", Priority: task.High, Timeout: 90 * time.Second, MaxAttempts: 4,
		Backoff: task.Backoff{Base: time.Second, Cap: time.Hour},
		Rule: schedule.Rule{
			Cron: "0 2 * * *", Timezone: "Asia/Seoul", DST: schedule.DST{Gap: schedule.DSTGapSkip, Overlap: schedule.DSTOverlapBoth},
			Start: "2030-01-01T00:00:00Z", Until: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), MaxRuns: 7, Jitter: time.Minute,
			Missed: schedule.MissedAll, CatchUp: 2 * time.Hour, Overlap: schedule.OverlapQueue,
		},
	}
	for _, f := range producer.Fields() {
		if f.Name != "every" && reflect.ValueOf(f.Of(&want)).Elem().IsZero() {
			t.Errorf("%s is not set", f.Name)
		}
	}
	for _, want := range []producer.Schedule{want, {Name: "s", Task: "t", Rule: schedule.Every(36 * time.Hour)}} {
		shown, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Parse("x.yaml", []byte("["+string(shown)+"]"), func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		if err := f.CheckSchedules(task.Limits{}); err != nil || len(f.Schedules) != 1 || !reflect.DeepEqual(f.Schedules[0], want) {
			t.Errorf("%s is read as %+v, %v", shown, f.Schedules, err)
		}
	}
}

// The base and the cap may be said in any order, and in either way.
func TestSchedules_backoff(t *testing.T) {
	t.Parallel()
	want := task.Backoff{Base: 2 * time.Second, Cap: time.Minute}
	for _, text := range []string{"backoff: 2s, backoff_cap: 1m", "backoff_cap: 1m, backoff: 2s", "backoff: {base: 2s, cap: 1m}", "backoff: {cap: 1m, base: 2s}", "<<: {backoff: 3s}, backoff_cap: 1m, backoff: 2s"} {
		f, err := Parse("x.yaml", []byte("[{name: s, task: t, every: 1m, "+text+"}]"), func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		if err := f.CheckSchedules(task.Limits{}); err != nil || f.Schedules[0].Backoff != want {
			t.Errorf("%s: %+v, %v", text, f.Schedules[0].Backoff, err)
		}
	}
}
