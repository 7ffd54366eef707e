package producer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/onbeat/onbeat/task"
)

// Plan is the effect that [Schedules.Apply] would have on one schedule.
type Plan struct {
	// Result is the result that Apply would return.
	Result ApplyResult
	// Changes are the fields that Apply would change, by name. Empty unless Result is Changed; also empty if the stored
	// schedule cannot be read because a newer release wrote it.
	Changes []FieldChange
	// Declared: a release declares the stored schedule, and its next leader declares that again. Release is the name of the
	// release, if it has one.
	Declared bool
	Release  string
	// Secret are the paths of the stored payload that are secret.
	Secret []string
}

// FieldChange is a field that differs. It has the field's name as in JSON and YAML (within a payload with dots), the old
// value and the new one; a value that is not set is "".
type FieldChange struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
}

// Plan returns the effect that [Schedules.Apply] would have now. It writes nothing.
func (s *Schedules) Plan(ctx context.Context, want Schedule) (Plan, error) {
	if err := s.check(ctx, &want); err != nil {
		return Plan{}, err
	}
	st, now, err := s.read(ctx, want.Name)
	if err != nil && !errors.Is(err, task.ErrNotFound) {
		return Plan{}, err
	}
	did, _, err := apply(st, &want, nil, now)
	if err != nil || did == Made {
		return Plan{Result: did}, err
	}
	p := Plan{Result: did}
	was, err := readDefinition(st)
	if err != nil {
		return p, nil //nolint:nilerr // Apply replaces what it cannot read
	}
	p.Secret = s.p.Secret(was.Task, was.Secret)
	of := []Status{{Origin: was.Origin, Release: was.Release}}
	if err := s.addDeclarer(ctx, of); err != nil {
		return p, err
	}
	p.Declared, p.Release = was.Origin == Declared, of[0].Release
	if did == Changed {
		p.Changes, err = changesOf(&was.Schedule, &want)
	}
	return p, err
}

// longestFlat is the most bytes of payloads that are compared value by value, which takes a hundred times their bytes.
const longestFlat = 64 << 10

// changesOf lists the fields in which two schedules differ.
func changesOf(was, want *Schedule) ([]FieldChange, error) {
	if len(was.Payload)+len(want.Payload) > longestFlat {
		a, b := *was, *want
		a.Payload, b.Payload = nil, nil
		list, err := changesOf(&a, &b)
		if err == nil && !bytes.Equal(was.Payload, want.Payload) {
			list = append(list, FieldChange{"payload", string(was.Payload), string(want.Payload)})
		}
		return list, err
	}
	a, err := textsOf(was)
	if err != nil {
		return nil, err
	}
	b, err := textsOf(want)
	if err != nil {
		return nil, err
	}
	names := maps.Clone(a)
	maps.Copy(names, b)
	var list []FieldChange
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a[name] != b[name] {
			list = append(list, FieldChange{name, a[name], b[name]})
		}
	}
	if len(list) == 0 && !same(was, want) { // the same values in another order
		list = append(list, FieldChange{"payload", string(was.Payload), string(want.Payload)})
	}
	return list, nil
}

// textsOf returns the fields of a schedule that are set, as text.
func textsOf(s *Schedule) (map[string]string, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // a number may not fit into a float64
	var top map[string]any
	if err := d.Decode(&top); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for name, v := range top {
		flatten(out, name, v)
	}
	return out, nil
}

// flatten writes a JSON value as text; of an object, it writes each value by itself. Text in a payload keeps its quotes,
// because "5" is not 5 there.
func flatten(out map[string]string, path string, v any) {
	if text, ok := v.(string); ok && path != "payload" && !strings.HasPrefix(path, "payload.") {
		out[path] = text
		return
	}
	object, ok := v.(map[string]any)
	if !ok || len(object) == 0 {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(v) // it was decoded from JSON
		out[path] = strings.TrimSpace(b.String())
		return
	}
	for key, below := range object {
		if key == "" || strings.ContainsAny(key, `."`) {
			key = strconv.Quote(key)
		}
		flatten(out, path+"."+key, below)
	}
}
