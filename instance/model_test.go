package instance

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// modelled is what the model knows of an instance.
type modelled struct {
	member
	order            int64
	ready, drains    bool
	standby, expired bool
	sticky           bool
}

// model says which instance must lead, in a few lines of Go.
type model struct {
	live   map[string]*modelled
	leader string
	gen    int64
}

func (m *model) elect() {
	var best *modelled
	for _, i := range m.live {
		if i.ready && !i.drains && !i.standby && !i.expired &&
			(best == nil || i.order > best.order || i.order == best.order && i.gen > best.gen) {
			best = i
		}
	}
	now := m.live[m.leader]
	switch {
	case best == nil:
		m.leader = ""
	case best.sticky && now != nil && now.gen == m.gen && now.ready && !now.drains && !now.expired && now.order == best.order:
	default:
		m.leader, m.gen = best.id, best.gen
	}
}

// sweep drops the expired, as every call that changes the registry does first.
func (m *model) sweep() (found bool) {
	for id, i := range m.live {
		if i.expired {
			delete(m.live, id)
			found = true
		}
	}
	if found {
		m.elect()
	}
	return found
}

func (m *model) ids(may func(*modelled) bool) []string {
	var ids []string
	for id, i := range m.live {
		if may(i) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Random calls of several instances and releases: after each call that elects, the model's instance leads, and the epoch
// rises exactly when the leader changes.
func TestRegistry_electsWhoTheModelSays(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		rapid.Check(t, func(rt *rapid.T) { checkModel(t, rt, newRig(t, rdb)) })
	})
}

func checkModel(t *testing.T, rt *rapid.T, r *rig) {
	ctx := context.Background()
	m := model{live: map[string]*modelled{}}
	var epoch int64
	lastLeader, lastGen := "", int64(0)

	check := func(v View, err error) {
		if err != nil {
			rt.Fatal(err)
		}
		if v.Leader != m.leader || m.leader != "" && v.LeaderGen != m.gen {
			rt.Fatalf("%q (%d) leads, want %q (%d)", v.Leader, v.LeaderGen, m.leader, m.gen)
		}
		changed := v.Leader != lastLeader || v.Leader != "" && v.LeaderGen != lastGen
		if changed && v.Epoch <= epoch || v.Epoch < epoch {
			rt.Fatalf("epoch %d after %d, and the leader is now %q", v.Epoch, epoch, v.Leader)
		}
		lastLeader, lastGen, epoch = v.Leader, v.LeaderGen, v.Epoch
	}
	// pick draws one of the live, or skips the action.
	pick := func(may func(*modelled) bool) *modelled {
		ids := m.ids(may)
		if len(ids) == 0 {
			rt.Skip("nobody")
		}
		return m.live[rapid.SampledFrom(ids).Draw(rt, "id")]
	}
	lives := func(i *modelled) bool { return !i.expired }

	rt.Repeat(map[string]func(*rapid.T){
		"register": func(rt *rapid.T) {
			id := fmt.Sprint("i", rapid.IntRange(0, 5).Draw(rt, "id"))
			c := Config{ID: id, Lease: time.Hour, Standby: rapid.IntRange(0, 5).Draw(rt, "standby") == 0}
			if n := rapid.IntRange(0, 3).Draw(rt, "release"); n > 0 {
				c.Release = fmt.Sprint("v", n)
			}
			if rapid.Bool().Draw(rt, "sticky") {
				c.Lead = LeadSticky
			}
			m.sweep()
			old, again := m.live[id]
			if again {
				r.prove(old.member) // as below
			}
			gen, order, v, err := r.reg.Register(ctx, c, Past{})
			m.live[id] = &modelled{
				member: member{id, gen}, order: order, standby: c.Standby, sticky: c.Lead == LeadSticky,
			}
			if again {
				m.elect()
			}
			check(v, err)
		},
		"ready": func(*rapid.T) {
			i := pick(lives)
			m.sweep()
			if !i.ready && !i.drains {
				i.ready = true
				m.elect()
			}
			check(r.reg.Ready(ctx, i.id, i.gen, DefaultLease))
		},
		"resign": func(*rapid.T) {
			i := pick(lives)
			m.sweep()
			if !i.drains {
				i.drains = true
				m.elect()
			}
			check(r.reg.Resign(ctx, i.id, i.gen))
		},
		"leave": func(*rapid.T) {
			i := pick(func(*modelled) bool { return true })
			delete(m.live, i.id)
			m.sweep()
			m.elect()
			check(r.reg.Deregister(ctx, i.id, i.gen))
		},
		"heartbeat": func(*rapid.T) {
			i := pick(func(*modelled) bool { return true })
			b, err := r.reg.Heartbeat(ctx, i.id, i.gen, time.Hour, time.Time{}, "")
			if i.expired {
				if err == nil {
					rt.Fatalf("%s renewed a lease that had run out", i.id)
				}
				return
			}
			if !m.sweep() && m.leader == "" {
				m.elect()
			}
			check(b.View, err)
		},
		"expire": func(*rapid.T) {
			i := pick(lives)
			r.prove(i.member) // probation is not the model's: see rank_test.go
			r.expire(i.member, time.Duration(rapid.IntRange(1, 100).Draw(rt, "seconds"))*time.Second)
			i.expired = true
		},
		"open": func(*rapid.T) {
			i := pick(lives)
			_, err := r.reg.Open(ctx, queue.Term{Instance: i.id, Gen: i.gen, Epoch: epoch})
			if leads := i.id == lastLeader && i.gen == lastGen; leads != (err == nil) {
				rt.Fatalf("%s leads: %v; open: %v", i.id, leads, err)
			}
		},
	})
	r.forget()
}
