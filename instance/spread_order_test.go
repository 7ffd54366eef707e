package instance

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
)

// enter registers a process of a release in a partition, as a manager does that shares an order, and makes it ready.
func enter(r *rig, id, release string, o *Order) member {
	r.Helper()
	gen, order, _, err := r.reg.Register(r.Context(), Config{ID: id, Release: release, Lease: DefaultLease}, Past{Elsewhere: o.known()})
	must(r, err)
	o.note(order)
	m := member{id, gen}
	r.ready(m)
	return m
}

// Two releases that come up at the same time, each first in another partition, are in the same order in both.
func TestOrder_ofTwoReleasesAtOnce(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		p, one, two := newParts(t, rdb, 2), &Order{}, &Order{}
		enter(p[0], "a", "v1", one)
		enter(p[1], "b", "v2", two)
		enter(p[1], "a", "v1", one)
		enter(p[0], "b", "v2", two)
		if got := p.leaders(); got[0] != got[1] {
			t.Errorf("%v lead", got)
		}
	})
}

// A release that is rolled back to, and of which one partition still has an instance, leads there too.
func TestOrder_ofARollbackThatOnePartitionDoesNotSee(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		p, old, now, back := newParts(t, rdb, 2), &Order{}, &Order{}, &Order{}
		gone := enter(p[0], "a", "v1", old)
		enter(p[1], "a", "v1", old)
		enter(p[0], "b", "v2", now)
		enter(p[1], "b", "v2", now)
		p[0].leave(gone)
		c := enter(p[0], "c", "v1", back)
		if lead, _, _ := p[0].lead(); lead != "c" {
			t.Fatalf("%s leads, want the release that came back", lead)
		}
		gen, _, _, err := p[1].reg.Register(t.Context(), Config{ID: "c", Release: "v1", Lease: DefaultLease}, Past{Elsewhere: back.known()})
		must(t, err)
		if lead, _, _ := p[1].lead(); lead != "a" {
			t.Errorf("%s leads before c is ready, want a, which is of its release", lead)
		}
		p[1].ready(member{"c", gen})
		if lead, _, _ := p[1].lead(); lead != "a" && lead != "c" {
			t.Errorf("%s leads, want one of v1", lead)
		}
		p[0].leave(c)
	})
}

// A process that knows only of an earlier order makes no release older.
func TestOrder_neverFalls(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		p := newParts(t, rdb, 1)
		enter(p[0], "a", "v1", &Order{})
		enter(p[0], "b", "v2", &Order{})
		early := &Order{}
		early.note(1)
		enter(p[0], "c", "v2", early)
		enter(p[0], "d", "v1", early)
		if lead, _, _ := p[0].lead(); lead != "b" && lead != "c" {
			t.Errorf("%s leads, want one of v2", lead)
		}
	})
}

// Two releases that came to two partitions in different orders, and neither knew of the other partition: they agree in the end.
func TestOrder_isCarriedOver(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		p := newParts(t, rdb, 2)
		enter(p[0], "a", "v1", &Order{})
		enter(p[0], "b", "v2", &Order{})
		enter(p[1], "b", "v2", &Order{})
		enter(p[1], "a", "v1", &Order{})
		if got := p.leaders(); got[0] == got[1] {
			t.Fatalf("%v lead: the partitions agree before", got)
		}
		orders := map[string]int64{"v1": 0, "v2": 0}
		for range 4 { // heartbeats of both, in both
			for _, at := range p {
				for release, known := range orders {
					order, err := at.reg.Raise(t.Context(), release, max(known, 2))
					must(t, err)
					orders[release] = max(orders[release], order)
				}
			}
		}
		if got := p.leaders(); got[0] != got[1] {
			t.Errorf("%v lead, by the orders %v", got, orders)
		}
	})
}
