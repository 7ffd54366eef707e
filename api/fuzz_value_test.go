package api

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// memory is what is known to exist, by kind: names of schedules, IDs of tasks, cursors. It is how requests get deep.
type memory struct {
	mu    sync.Mutex
	known map[string][]string
}

const mostKnown = 200

// learn notes what a reply names.
func (m *memory) learn(op *operation, body []byte) {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return
	}
	kind, _, _ := strings.Cut(strings.TrimPrefix(op.path, "/v1/"), "/")
	m.walk(kind, v)
}

func (m *memory) walk(kind string, v any) {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if i >= 20 {
				return
			}
			m.walk(kind, item)
		}
	case map[string]any:
		if v["state"] == "dead" {
			m.note("dead", fmt.Sprint(v["id"]))
		}
		if revision, ok := v["revision"].(float64); ok && v["name"] != nil {
			m.note("revised", fmt.Sprintf("%d %s", int64(revision), v["name"]))
		}
		for name, item := range v {
			text, ok := item.(string)
			switch {
			case !ok && name != "payload":
				m.walk(kind, item)
			case name == "name" || name == "id":
				m.note(kind, text)
			case name == "schedule":
				m.note("schedules", text)
			case name == "next" || name == "after":
				m.note("cursors", text)
			}
		}
	}
}

func (m *memory) note(kind, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.known[kind]
	switch {
	case text == "" || slices.Contains(list, text):
	case len(list) < mostKnown:
		m.known[kind] = append(list, text)
	default:
		list[rand.IntN(len(list))] = text
	}
}

// one returns something known of a kind, or "".
func (m *memory) one(r *rand.Rand, kind string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if list := m.known[kind]; len(list) > 0 {
		return list[r.IntN(len(list))]
	}
	return ""
}

// maker makes values. One worker has it.
type maker struct {
	*rand.Rand
	doc    *document
	memory *memory
	id     string // of the run and the worker
	made   int
}

func (k *maker) oneIn(n int) bool { return k.IntN(n) == 0 }

func pick[T any](k *maker, list ...T) T { return list[k.IntN(len(list))] }

// fresh returns a name that nothing has.
func (k *maker) fresh() string {
	k.made++
	return fmt.Sprintf("%s-%d", k.id, k.made)
}

// strange are texts that are hard on whoever takes them for a name.
var strange = []string{
	"", " ", "a/b", "a b", "日本語", "é", "e\u0301", "\u202eabc", "a\x00b", "a\nb", "\x1b[31m", "..", ".", "a//b", "*", "%", "%2F", "{name}", "'\"`;--",
	"null", "0", "-1", "1e99", "<script>", "\ufeff", "\U0010ffff", "a:b", "+", "?", "#", strings.Repeat("x", 256), strings.Repeat("y", 5_000),
}

// text returns a string for the field of a name.
func (k *maker) text(name string) string {
	if k.oneIn(15) {
		return pick(k, strange...)
	}
	now := time.Now().UTC()
	moments := []string{"1m", "90s", "1h", "0s", now.Format(time.RFC3339), now.Add(-time.Hour).Format(time.RFC3339Nano), now.Format(time.DateOnly)}
	switch name {
	case "name", "schedule":
		if known := k.memory.one(k.Rand, "schedules"); known != "" && k.oneIn(2) {
			return known
		}
		return fmt.Sprintf("%s-s%d", k.id, k.IntN(20)) // not ever more of them: they run
	case "id":
		if known := k.memory.one(k.Rand, "tasks"); known != "" && k.oneIn(3) {
			return known
		}
		return k.fresh()
	case "task", "type":
		return pick(k, "echo", "echo", "fail", "slow", "nobody")
	case "queue":
		return pick(k, "default", "q1", "q2")
	case "cron":
		return pick(k, "* * * * * *", "*/5 * * * *", "0 2 * * *", "30 1 L * *", "0 0 31 2 *")
	case "timezone":
		return pick(k, "UTC", "Asia/Seoul", "Europe/Berlin", "Mars/Base")
	case "every":
		return pick(k, "200ms", "1s", "5s", "1m", "1h30m", "2d")
	case "start":
		return pick(k, "aligned", now.Format(time.RFC3339))
	case "until", "at":
		return now.Add(time.Duration(k.IntN(100)) * time.Minute).Format(time.RFC3339)
	case "from", "to", "since":
		return pick(k, moments...)
	case "after":
		return k.memory.one(k.Rand, "cursors")
	case "release":
		return pick(k, "v1", "v2", "v9")
	case "priority":
		return pick(k, "low", "normal", "high")
	case "keep", "in", "timeout", "backoff", "backoff_cap", "jitter", "catch_up", "unique_for", "tolerance":
		return pick(k, "250ms", "1s", "5s", "1m")
	case "for":
		return pick(k, "1ms", "20ms", "50ms")
	case "trace":
		return "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	case "secret":
		return pick(k, "card.number", "*", "items.*.token")
	}
	return pick(k, "a", "b", "c")
}

// value returns a value that fits a schema. Enough of them also make sense.
func (k *maker) value(s *shape, name string) any {
	s = k.doc.of(s)
	if len(s.OneOf) > 0 {
		return k.value(pick(k, s.OneOf...), name)
	}
	if len(s.Enum) > 0 {
		return pick(k, s.Enum...)
	}
	switch kinds := s.kinds(); {
	case len(kinds) == 0:
		return k.anything(3)
	case kinds[0] == "string" && s.Format == "date-time":
		return time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	case kinds[0] == "string":
		return k.text(name)
	case kinds[0] == "integer":
		return pick(k, 1, 1, 2, 3, 5, 10, 0, -1, 1_000_000)
	case kinds[0] == "number":
		return k.Float64()
	case kinds[0] == "boolean":
		return k.oneIn(2)
	case kinds[0] == "array":
		list := []any{}
		for range k.IntN(4) {
			list = append(list, k.value(s.Items, name))
		}
		return list
	}
	return k.object(s)
}

func (k *maker) object(s *shape) map[string]any {
	out := map[string]any{}
	for _, name := range sorted(s.Properties) {
		if slices.Contains(s.Required, name) || k.oneIn(6) {
			out[name] = k.value(s.Properties[name], name)
		}
	}
	k.agree(s, out)
	return out
}

// agree takes away what excludes, or needs, something else.
func (k *maker) agree(s *shape, m map[string]any) {
	if s.Properties["every"] != nil && s.Properties["cron"] != nil {
		if delete(m, "cron"); k.oneIn(3) {
			m["cron"] = k.text("cron")
			delete(m, "every")
			delete(m, "start")
		} else {
			m["every"] = k.text("every")
			delete(m, "timezone")
			delete(m, "dst")
		}
	}
	for name, needed := range map[string]string{"key_limit": "key", "unique_for": "unique", "unique": "unique_for", "tracestate": "trace", "backoff_cap": "backoff"} {
		if m[name] != nil && m[needed] == nil {
			delete(m, name)
		}
	}
	if m["at"] != nil {
		delete(m, "in")
	}
	if m["type"] == "fail" || m["task"] == "fail" {
		m["max_attempts"] = 1 // so that there are dead tasks
	}
}

// anything returns some JSON.
func (k *maker) anything(depth int) any {
	switch n := k.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return k.oneIn(2)
	case n == 2:
		return pick(k, json.Number("1"), "-0", "1.5e300", "12345678901234567890123", "0.1")
	case n < 5 || depth == 0:
		return pick(k, "x", "日本", "\u2028", "<&>", "4111111111111111", "a\x00")
	case n == 5:
		return []any{k.anything(depth - 1), k.anything(depth - 1)}
	}
	return map[string]any{"card": k.anything(depth - 1), "n": k.anything(depth - 1)}
}

func sorted[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for name := range m {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
