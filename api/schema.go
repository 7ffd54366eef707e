package api

import (
	"encoding/json"
	"fmt"
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
	typeOf[producer.Schedule]():      definitionType,
	typeOf[schedule.Duration]():      typeOf[durationSchema](),
	typeOf[admin.Enqueued]():         typeOf[admin.EnqueuedJSON](),
	typeOf[audit.Report]():           typeOf[audit.ReportJSON](),
	typeOf[instance.Lead]():          typeOf[string](),
	typeOf[instance.Consume]():       typeOf[string](),
	typeOf[admin.TaskState]():        typeOf[oneOf[admin.TaskState]](),
	typeOf[admin.Health]():           typeOf[oneOf[admin.Health]](),
	typeOf[admin.Action]():           typeOf[oneOf[admin.Action]](),
	typeOf[admin.BulkState]():        typeOf[oneOf[admin.BulkState]](),
	typeOf[schedule.Missed]():        typeOf[oneOf[schedule.Missed]](),
	typeOf[schedule.Overlap]():       typeOf[oneOf[schedule.Overlap]](),
	typeOf[schedule.GapPolicy]():     typeOf[oneOf[schedule.GapPolicy]](),
	typeOf[schedule.OverlapPolicy](): typeOf[oneOf[schedule.OverlapPolicy]](),
}

// words are those of the types that have a few words.
var words = map[reflect.Type][]any{
	typeOf[admin.TaskState](): {admin.TaskRunning, admin.TaskWaiting, admin.TaskRetrying, admin.TaskPlanned, admin.TaskDead, admin.TaskDone, admin.TaskGone},
	typeOf[admin.Health](): {
		admin.Unhandled, admin.Hung, admin.Failing, admin.Overdue, admin.Missed, admin.Skipped, admin.Stale, admin.Retired, admin.Paused, admin.Ended, admin.Deleted, admin.Well,
	},
	typeOf[admin.Action]():           {admin.CancelTasks, admin.RetryTasks, admin.RetryAsWas, admin.DeleteTasks},
	typeOf[admin.BulkState]():        {admin.BulkWaiting, admin.BulkRunning, admin.BulkStopped, admin.BulkFailed, admin.BulkDone},
	typeOf[schedule.Missed]():        {schedule.MissedOnce, schedule.MissedAll, schedule.MissedSkip},
	typeOf[schedule.Overlap]():       {schedule.OverlapAllow, schedule.OverlapSkip, schedule.OverlapQueue, schedule.OverlapReplace},
	typeOf[schedule.GapPolicy]():     {schedule.DSTGapSkip, schedule.DSTGapAfter},
	typeOf[schedule.OverlapPolicy](): {schedule.DSTOverlapFirst, schedule.DSTOverlapSecond, schedule.DSTOverlapBoth},
}

type (
	durationSchema struct{}
	oneOf[T any]   struct{} // one of the words of a type
)

// Schema is read by huma.
func (durationSchema) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: "A length of time.", Examples: []any{"250ms", "1h30m", "2d"}}
}

// Schema is read by huma.
func (oneOf[T]) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, w := range words[typeOf[T]()] {
		s.Enum = append(s.Enum, fmt.Sprint(w))
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
