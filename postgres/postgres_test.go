package postgres

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/database"
)

func TestParse_completesWhatAURLLeavesOpen(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]struct {
		name string
		wait time.Duration
	}{
		"": {"onbeat outbox", connectTimeout}, "?application_name=shop&connect_timeout=3": {"shop", 3 * time.Second},
	} {
		a, err := database.Parse("outbox", "postgres://u:p%23w@h/d"+query)
		if err != nil {
			t.Fatal(err)
		}
		s := a.Postgres.(*server)
		if name := s.RuntimeParams["application_name"]; name != want.name || s.ConnectTimeout != want.wait || s.Password() != "p#w" {
			t.Errorf("%q: %s, %s", query, name, s.ConnectTimeout)
		}
	}
}
