package api

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

// schemas says which types describe others that are not in JSON what they are in Go.
var schemas = map[reflect.Type]reflect.Type{
	reflect.TypeFor[producer.Schedule]():      definitionType,
	reflect.TypeFor[schedule.Duration]():      reflect.TypeFor[durationSchema](),
	reflect.TypeFor[admin.TaskState]():        reflect.TypeFor[stateSchema](),
	reflect.TypeFor[admin.Health]():           reflect.TypeFor[healthSchema](),
	reflect.TypeFor[admin.Action]():           reflect.TypeFor[actionSchema](),
	reflect.TypeFor[admin.BulkState]():        reflect.TypeFor[bulkStateSchema](),
	reflect.TypeFor[admin.Enqueued]():         reflect.TypeFor[admin.EnqueuedJSON](),
	reflect.TypeFor[audit.Report]():           reflect.TypeFor[audit.ReportJSON](),
	reflect.TypeFor[schedule.Missed]():        reflect.TypeFor[missedSchema](),
	reflect.TypeFor[schedule.Overlap]():       reflect.TypeFor[overlapSchema](),
	reflect.TypeFor[schedule.GapPolicy]():     reflect.TypeFor[gapSchema](),
	reflect.TypeFor[schedule.OverlapPolicy](): reflect.TypeFor[foldSchema](),
	reflect.TypeFor[instance.Lead]():          reflect.TypeFor[string](),
	reflect.TypeFor[instance.Consume]():       reflect.TypeFor[string](),
}

type (
	durationSchema  struct{}
	stateSchema     struct{}
	actionSchema    struct{}
	healthSchema    struct{}
	bulkStateSchema struct{}
	missedSchema    struct{}
	overlapSchema   struct{}
	gapSchema       struct{}
	foldSchema      struct{}
)

// Schema is read by huma.
func (durationSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: "A length of time.", Examples: []any{"250ms", "1h30m", "2d"}}
}

// Schema is read by huma.
func (stateSchema) Schema(huma.Registry) *huma.Schema {
	return words(admin.TaskRunning, admin.TaskWaiting, admin.TaskRetrying, admin.TaskPlanned, admin.TaskDead, admin.TaskDone, admin.TaskGone)
}

// Schema is read by huma.
func (healthSchema) Schema(huma.Registry) *huma.Schema {
	return words(admin.Unhandled, admin.Hung, admin.Failing, admin.Overdue, admin.Missed, admin.Skipped, admin.Stale, admin.Retired, admin.Paused, admin.Ended, admin.Deleted, admin.Well)
}

// Schema is read by huma.
func (actionSchema) Schema(huma.Registry) *huma.Schema {
	return words(admin.CancelTasks, admin.RetryTasks, admin.RetryAsWas, admin.DeleteTasks)
}

// Schema is read by huma.
func (bulkStateSchema) Schema(huma.Registry) *huma.Schema {
	return words(admin.BulkWaiting, admin.BulkRunning, admin.BulkStopped, admin.BulkFailed, admin.BulkDone)
}

// Schema is read by huma.
func (missedSchema) Schema(huma.Registry) *huma.Schema {
	return words(schedule.MissedOnce, schedule.MissedAll, schedule.MissedSkip)
}

// Schema is read by huma.
func (overlapSchema) Schema(huma.Registry) *huma.Schema {
	return words(schedule.OverlapAllow, schedule.OverlapSkip, schedule.OverlapQueue, schedule.OverlapReplace)
}

// Schema is read by huma.
func (gapSchema) Schema(huma.Registry) *huma.Schema {
	return words(schedule.DSTGapSkip, schedule.DSTGapAfter)
}

// Schema is read by huma.
func (foldSchema) Schema(huma.Registry) *huma.Schema {
	return words(schedule.DSTOverlapFirst, schedule.DSTOverlapSecond, schedule.DSTOverlapBoth)
}

func words[T ~string](list ...T) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, w := range list {
		s.Enum = append(s.Enum, string(w))
	}
	return s
}

// schemaName names a type in the document: a page of tasks is TaskList.
func schemaName(t reflect.Type, hint string) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[audit.ReportJSON]():
		return "AuditReport"
	case reflect.TypeFor[audit.Trouble]():
		return "AuditTrouble"
	case reflect.TypeFor[producer.Pause]():
		return "SchedulePause"
	case definitionType:
		return "Definition"
	}
	name := huma.DefaultSchemaNamer(t, hint)
	if of, ok := strings.CutPrefix(name, "List"); ok && of != "" && t.Kind() == reflect.Struct {
		return of + "List"
	}
	return name
}

// describe returns the document.
func (s *Server) describe() ([]byte, error) {
	all := s.huma.OpenAPI().Components.Schemas.Map()
	delete(all, "ErrorModel") // of huma; no reply has it
	delete(all, "ErrorDetail")
	for _, name := range []string{"Schedule", "ScheduleDetail"} { // one object with the definition
		maps.Copy(all[name].Properties, all["Definition"].Properties)
		all[name].Required = append(all[name].Required, all["Definition"].Required...)
	}
	for _, schema := range all {
		for _, p := range schema.Properties {
			if p.Type == huma.TypeArray {
				p.Nullable = false // a list is never null
			}
		}
	}
	return json.Marshal(s.huma.OpenAPI())
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }
