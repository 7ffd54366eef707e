package instance

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestList_showsTheHighestRankFirst(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		if list, err := r.reg.List(t.Context()); err != nil || len(list) != 0 {
			t.Fatalf("%v, %v before anybody joined", list, err)
		}
		a := r.up("a", "v1 with spaces")
		b := r.up("b", "v2", sticky, consume(ConsumeAll), func(c *Config) {
			c.Types, c.Concurrency = []string{"t", "u"}, 7
		})
		r.join("c", "v1 with spaces", standby)
		r.resign(a)
		r.open(b)
		r.enqueue("x", "y")
		r.wantClaims(b, 2)

		list, err := r.reg.List(t.Context())
		must(t, err)
		var ids, states []string
		for _, i := range list {
			ids, states = append(ids, i.ID), append(states, i.State)
		}
		if strings.Join(ids, " ") != "b c a" || strings.Join(states, " ") != "ready starting draining" {
			t.Fatalf("%q in states %q", ids, states)
		}
		got := list[0]
		if !got.Leader || got.Epoch != r.wantLeader("b") || got.Generation != b.gen || got.Running != 2 ||
			got.Lead != LeadSticky || got.Consume != ConsumeAll || got.Release != "v2" || got.Order <= list[1].Order ||
			got.PID != os.Getpid() || got.Concurrency != 7 || len(got.Types) != 2 || got.Started.IsZero() {
			t.Fatalf("%+v", got)
		}
		if got.Lease <= 50*time.Second || got.Lease > time.Minute {
			t.Fatalf("%v of the lease are left", got.Lease)
		}
		if c := list[1]; !c.Standby || c.Leader || c.Epoch != 0 || c.Release != "v1 with spaces" || c.Running != 0 {
			t.Fatalf("%+v", c)
		}
		if i := parseMember("z", "gibberish"); i.ID != "z" || i.State != "" {
			t.Fatalf("%+v", i)
		}
	})
}

func TestSuspected_takesNothingFromADamagedEntry(t *testing.T) {
	t.Parallel()
	for noted, want := range map[string]bool{
		"7 1 0 0 1795409773016": true, "7 0 2 1795409773010 1795409773016": true, "7 1 0 0 0": false, "8 1 0 0 1795409773016": false,
		"": false, "gibberish": false, "7 1 0 0": false, "7 1 0 0 soon": false, "7 1 0 0 ": false, "7 1 0 0 -5": false,
	} {
		if suspected(noted, 7) != want {
			t.Errorf("%q: suspected is not %v", noted, want)
		}
	}
}

func TestConfig_Validate(t *testing.T) {
	t.Parallel()
	for field, bad := range map[string][]Config{
		"lead":      {{Lead: "oldest"}},
		"consume":   {{Consume: "none"}},
		"lease":     {{Lease: 499 * time.Millisecond}, {Lease: -time.Second}, {Lease: time.Hour + 1}},
		"min_ready": {{MinReady: -1}},
		"id":        {{ID: "a b"}, {ID: strings.Repeat("a", 200)}, {ID: "a\x1f"}},
		"release":   {{Release: " v1"}, {Release: "v1 "}, {Release: "v\n1"}, {Release: "\xff"}},
	} {
		for _, c := range bad {
			var e *task.FieldError
			if err := c.Validate(); !errors.As(err, &e) || e.Field != field || e.Hint == "" {
				t.Errorf("%+v: %v, want a FieldError of %s with a hint", c, err, field)
			}
		}
	}
	for _, good := range []Config{
		{},
		{ID: "pod-0", Release: "v1.2 (main)", Lead: LeadSticky, Consume: ConsumeAll, Lease: 500 * time.Millisecond, MinReady: time.Hour},
		{Lead: LeadNewest, Consume: ConsumeRelease, Lease: time.Hour},
		Config{}.withDefaults(),
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	if a, b := (Config{}).withDefaults().ID, (Config{}).withDefaults().ID; a == b || len(a) != 36 {
		t.Errorf("IDs %q and %q", a, b)
	}
}
