package integration

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/onbeat/onbeat/schedule"
)

// asNow is what an earlier release prints as JSON in the shape of today: lists were bare, or named after what they hold, and
// durations were numbers of milliseconds.
func asNow(text []byte, args []string) []byte {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return text
	}
	v = durationsAsNow(v)
	object, _ := v.(map[string]any)
	switch list, bare := v.([]any); {
	case bare && isListing(args):
		v = map[string]any{"items": list}
	case object["tasks"] != nil && isListing(args):
		object["items"] = object["tasks"]
		delete(object, "tasks")
	}
	out, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return out
}

func isListing(args []string) bool {
	return args[0] == "events" || args[0] == "instances" || len(args) > 1 && args[1] == "list"
}

func durationsAsNow(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = durationsAsNow(v[i])
		}
	case map[string]any:
		for name, value := range v {
			n, number := value.(float64)
			now, was := strings.CutSuffix(name, "_ms")
			if was && number && (now == "timeout" || now == "backoff" || now == "backoff_cap") {
				delete(v, name)
				v[now] = schedule.FormatDuration(time.Duration(n) * time.Millisecond)
				continue
			}
			v[name] = durationsAsNow(value)
		}
	}
	return v
}
