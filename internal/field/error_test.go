package field

import (
	"errors"
	"testing"
)

func TestJoin_isOneLineAndMatchesEach(t *testing.T) {
	t.Parallel()
	a, b := &Error{Field: "every", Value: "0s", Reason: "zero"}, errors.New("b")
	if err := Join(nil, nil); err != nil {
		t.Errorf("of nothing: %v", err)
	}
	if err := Join(nil, a); err != error(a) {
		t.Errorf("of one: %v", err)
	}
	err := Join(a, nil, b)
	if err.Error() != `every "0s": zero; b` || !errors.Is(err, b) || !errors.Is(err, ErrInvalid) || Of(err) != a {
		t.Errorf("of two: %v", err)
	}
}
