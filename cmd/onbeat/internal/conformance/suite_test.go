package conformance

import (
	"strings"
	"testing"
)

func TestRun_refusesToTryNothing(t *testing.T) {
	t.Parallel()
	for says, o := range map[string]Options{
		`no scenario "leader kiled"`: {Rollouts: 1, Only: []string{"leader kiled"}},
		"0 rollouts":                 {},
		"1001 rollouts":              {Rollouts: 1001},
	} {
		report, err := Run(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), says) || report != nil {
			t.Errorf("%+v, %v; want %q", report, err, says)
		}
	}
}
