package histories

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// draw writes the history, as a page for a browser, to a file that outlives the test.
func (v verdict) draw(t *testing.T) (string, error) {
	dir, err := t.ArtifactDir(), error(nil)
	if f := flag.Lookup("test.artifacts"); f == nil || f.Value.String() != "true" { // then go test removes the file
		dir, err = os.MkdirTemp("", "onbeat-history-") //nolint:usetesting // the file must outlive the test, for a look at the failure
	}
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "history.html")
	return path, porcupine.VisualizePath(v.model, v.info, path)
}

// where returns, for the first parts with a fault, the end of the longest order that was found, and the calls that do not
// fit into it.
func (v verdict) where() string {
	parts := [][]porcupine.Operation{v.ops}
	if v.model.Partition != nil {
		parts = v.model.Partition(v.ops)
	}
	var text strings.Builder
	shown := 0
	for i, orders := range v.info.PartialLinearizationsOperations() {
		var longest []porcupine.Operation
		for _, o := range orders {
			if len(o) > len(longest) {
				longest = o
			}
		}
		if rest := without(parts[i], longest); len(rest) > 0 && shown < 2 {
			shown++
			v.show(&text, longest, rest)
		}
	}
	return text.String()
}

// show writes the end of the calls that can be put in order, and the calls that cannot.
func (v verdict) show(text *strings.Builder, longest, rest []porcupine.Operation) {
	const shown = 8
	line := func(op porcupine.Operation) {
		fmt.Fprintf(text, "  %9.3f - %9.3f ms  client %d  %s\n", float64(op.Call)/1e6, float64(op.Return)/1e6, op.ClientId,
			v.model.DescribeOperation(op.Input, op.Output))
	}
	fmt.Fprintf(text, "%d calls can be put in order; the last of them:\n", len(longest))
	for _, op := range longest[max(0, len(longest)-shown):] {
		line(op)
	}
	fmt.Fprintf(text, "%d cannot; the first of them:\n", len(rest))
	for _, op := range rest[:min(len(rest), shown)] {
		line(op)
	}
}

// without returns the operations that are not among others, sorted by when they returned.
func without(all, others []porcupine.Operation) []porcupine.Operation {
	rest := slices.DeleteFunc(slices.Clone(all), func(op porcupine.Operation) bool { return slices.Contains(others, op) })
	slices.SortFunc(rest, func(a, b porcupine.Operation) int { return int(a.Return - b.Return) })
	return rest
}

// terse prints a struct, or several, without the fields that are zero.
func terse(v any) string {
	if list, ok := v.([]any); ok {
		all := make([]string, len(list))
		for i, v := range list {
			all[i] = terse(v)
		}
		return strings.Join(all, " or ")
	}
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Struct {
		return fmt.Sprintf("%+v", v)
	}
	var words []string
	for i := range r.NumField() {
		if f := r.Field(i); !f.IsZero() {
			words = append(words, fmt.Sprintf("%s:%+v", r.Type().Field(i).Name, f))
		}
	}
	return "{" + strings.Join(words, " ") + "}"
}
