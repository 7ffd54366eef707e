package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// A leader in its term stands in for scripts that do not compare terms: its calls take effect.
func TestDeposed_findsThatATermThatIsOverIsNotRefused(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		ns := testredis.Namespace(t)
		d, err := onbeat.New(rdb, onbeat.Config{Namespace: ns})
		if err != nil {
			t.Fatal(err)
		}
		q, err := queue.New(rdb, queue.Partition{Namespace: ns}, queue.Caps{})
		if err != nil {
			t.Fatal(err)
		}
		reg, err := instance.NewRegistry(rdb, ns)
		if err != nil {
			t.Fatal(err)
		}
		gen, _, _, err := reg.Register(t.Context(), instance.Config{ID: "a", Lease: time.Minute}, instance.Past{})
		if err != nil {
			t.Fatal(err)
		}
		v, err := reg.Ready(t.Context(), "a", gen, instance.DefaultLease)
		if err != nil {
			t.Fatal(err)
		}
		s := &Stage{Scratch: &Scratch{Admin: d.Admin(), Queue: q}}
		term := queue.Term{Instance: "a", Gen: gen, Epoch: v.Epoch}
		if err := s.deposed(t.Context(), term); err != nil || len(s.found) != 1 || !strings.Contains(s.found[0], "which is over") {
			t.Errorf("%q, %v; want to hear that a could push slots", s.found, err)
		}
		term.Epoch--
		if err := s.deposed(t.Context(), term); err != nil {
			t.Errorf("of an earlier term: %v", err)
		}
		if _, err := reg.Resign(t.Context(), "a", gen); err != nil {
			t.Fatal(err)
		}
		if err := s.deposed(t.Context(), queue.Term{Instance: "a", Gen: gen, Epoch: v.Epoch}); err != nil {
			t.Errorf("after it has resigned: %v", err)
		}
		if len(s.found) != 1 {
			t.Errorf("it finds %q", s.found)
		}
	})
}
