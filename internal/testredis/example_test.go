package testredis_test

import (
	"errors"
	"testing"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// t is what go test passes to a test. TestMain of the package calls testredis.Main.
var t *testing.T

// There is no output: the example is compiled, and the comment of the package shows its body as a test.
func Example() {
	t.Parallel()
	d, err := onbeat.New(testredis.Client(t), onbeat.Config{Namespace: testredis.Namespace(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []error{nil, task.ErrDuplicate} {
		if _, err := d.Enqueue(t.Context(), task.New("invoice.send", nil), task.ID("inv-42")); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}
