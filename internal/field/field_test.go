package field

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

func TestVeil_hidesSecretsInErrors(t *testing.T) {
	t.Parallel()
	cause := errors.New("hunter2 is wrong")
	s := secret.OfPayload([]byte(`{"a":"hunter2","n":99}`), []string{"*"})
	err := Veil(s, fmt.Errorf("%w: %w", cause, &task.FieldError{Field: "a", Value: "99", Reason: "no hunter2"}))
	if f := Of(err); !errors.Is(err, cause) || strings.Contains(err.Error(), "hunter2") || f == nil || f.Value != secret.Masked || f.Reason != "no "+secret.Masked {
		t.Errorf("%v, %+v", err, f)
	}
	if Veil(nil, cause) != cause || Veil(s, nil) != nil {
		t.Error("without secrets an error stays as it is")
	}
}

func TestOf_findsTheFirstOfJoinedErrors(t *testing.T) {
	t.Parallel()
	a, b := &task.FieldError{Field: "every", Value: "0s", Reason: "zero"}, errors.New("b")
	err := wording.Join(a, nil, b)
	if err.Error() != `every "0s": zero; b` || !errors.Is(err, b) || !errors.Is(err, task.ErrInvalid) || Of(err) != a || Of(b) != nil {
		t.Errorf("of two: %v", err)
	}
	if err := wording.Join(nil, nil); err != nil {
		t.Errorf("of nothing: %v", err)
	}
	if err := wording.Join(nil, a); err != error(a) {
		t.Errorf("of one: %v", err)
	}
}

func TestIn_namesThePlaceOfEachField(t *testing.T) {
	t.Parallel()
	a, b := &task.FieldError{Field: "replicas"}, &task.FieldError{Field: "timeout"}
	err := In("durability", wording.Join(a, b))
	if got := Of(err).Field; got != "durability.replicas" || a.Field != "replicas" || !strings.Contains(err.Error(), "durability.timeout") {
		t.Errorf("%q, %v", got, err)
	}
	if other := errors.New("x"); In("a", other) != other || In("a", nil) != nil {
		t.Error("other errors stay as they are")
	}
}
