package instance

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestLook_replacesALeaderThatDied(t *testing.T) {
	t.Parallel()
	towers(t, func(t *testing.T, w *tower) {
		w.idle(w.b)
		if l := w.look(); l.Suspected || l.Listeners != 1 || l.Own != 1 {
			t.Fatalf("while it lives: %+v", l)
		}
		began := time.Now()
		if l := w.dies(time.Second); !l.Suspected {
			t.Fatalf("after its death: %+v", l)
		}
		if took := time.Since(began); took > 60*time.Millisecond {
			t.Errorf("took %v", took)
		}
		w.wantLeader("a")
		w.wantOpen(true)
		if !slices.Contains(w.events(), "suspected b") {
			t.Error("no event")
		}
	})
}

// A caller of List sees at once that an instance is suspected, and not only when its lease ends.
func TestList_showsWhoIsSuspected(t *testing.T) {
	t.Parallel()
	towers(t, func(t *testing.T, w *tower) {
		want := func(when, want string) {
			t.Helper()
			list, err := w.reg.List(t.Context())
			must(t, err)
			var got []string
			for _, i := range list {
				if i.Suspected {
					got = append(got, i.ID+" is "+i.State)
				}
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%s: %q suspected, want %q", when, got, want)
			}
		}
		w.idle(w.b)
		want("while it lives", "")
		w.dies(time.Second)
		want("after its death", "b is ready")
		w.beat(w.b)
		want("when it turns out to live", "")
	})
}

// Only a process that is known to listen can be missed, and only by one that listens itself.
func TestLook_judgesByListenersOnlyIfThatProvesSomething(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(w *tower) time.Duration{
		"the leader never listened": func(w *tower) time.Duration {
			w.deaf("b")
			w.beat(w.b)
			return time.Minute
		},
		"the monitor does not listen": func(w *tower) time.Duration {
			w.deaf("b")
			w.deaf("a")
			return time.Minute
		},
		"the monitor has listened for too short a time": func(w *tower) time.Duration {
			w.deaf("b")
			return lookTrusts - time.Millisecond
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			towers(t, func(t *testing.T, w *tower) {
				w.idle(w.b)
				listened := test(w)
				for range 20 {
					if l := w.lookAs(w.a, w.b, listened); l.Suspected {
						t.Fatalf("suspected: %+v", l)
					}
					time.Sleep(lookAlone)
				}
			})
		})
	}
}

// A leader that owes a look at due work, and shows no sign of life, is frozen.
func TestLook_replacesALeaderThatIsFrozen(t *testing.T) {
	t.Parallel()
	towers(t, func(t *testing.T, w *tower) {
		w.idle(w.b)
		w.enqueue("due")
		began := time.Now()
		if l := w.watches(5 * time.Second); !l.Suspected {
			t.Fatalf("%+v", l)
		}
		if took := time.Since(began); took < lookOwing || took > lookOwing+100*time.Millisecond {
			t.Errorf("took %v", took)
		}
		w.wantLeader("a")
		w.wantClaims(w.a, 1)
	})
}

// Each of a heartbeat, a cycle and a push is a sign of life.
func TestLook_seesSignsOfLife(t *testing.T) {
	t.Parallel()
	for name, sign := range map[string]func(w *tower){
		"heartbeat": func(w *tower) { w.beat(w.b) },
		"cycle": func(w *tower) {
			w.want = 0
			_, err := w.claim(w.b)
			must(w, err)
			z := z("b\x1f", time.Now().Add(-time.Minute)) // it owes a look all the while
			must(w, w.rdb.ZAdd(w.Context(), w.q.Keys().Watch, z).Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			towers(t, func(t *testing.T, w *tower) {
				w.idle(w.b)
				w.enqueue("due")
				for range 30 {
					time.Sleep(lookBusy)
					sign(w)
					if l := w.look(); l.Suspected {
						t.Fatalf("%+v", l)
					}
				}
			})
		})
	}
}

// Nothing is due: nobody looks, and a look finds nothing wrong.
func TestLook_restsWhileNothingIsDue(t *testing.T) {
	t.Parallel()
	towers(t, func(t *testing.T, w *tower) {
		w.idle(w.b)
		for range 10 {
			time.Sleep(200 * time.Millisecond)
			if l := w.look(); l.Suspected || !l.Next.IsZero() || !l.Monitor {
				t.Fatalf("%+v", l)
			}
		}
		if b := w.beat(w.a); !b.Monitor || b.Look < time.Minute {
			t.Errorf("a heartbeat says: look in %v", b.Look)
		}
	})
}

// A monitor that was frozen itself knows nothing of the time between: its earlier looks do not count.
func TestLook_forgetsWhatItSawBeforeItWasLate(t *testing.T) {
	t.Parallel()
	towers(t, func(t *testing.T, w *tower) {
		w.idle(w.b)
		w.enqueue("due")
		w.look()
		time.Sleep(20 * time.Second)
		if l := w.look(); l.Suspected {
			t.Fatal("suspected by a look that was late")
		}
		w.wantLeader("b")
	})
}

// Promise 4: a suspected leader keeps its claims until its lease ends. It finds out by its next heartbeat, leads again, and is
// trusted longer.
func TestPromise4_aSuspectKeepsItsClaims(t *testing.T) {
	t.Parallel()
	towers(t, func(t *testing.T, w *tower) {
		w.idle(w.b)
		w.enqueue("held")
		held := w.wantClaims(w.b, 1)[0]
		w.idle(w.b)
		if l := w.dies(time.Second); !l.Suspected {
			t.Fatalf("%+v", l)
		}
		w.wantLeader("a")
		w.wantClaims(w.a, 0)
		before := w.genOf("b")
		w.listen(w.b)
		if v := w.beat(w.b); v.Leader != "b" || !v.May {
			t.Fatalf("back, and %+v", v)
		}
		if w.genOf("b") != before || !slices.Contains(w.events(), "suspected wrongly b") {
			t.Errorf("generation %d after %d; events %q", w.genOf("b"), before, w.events())
		}
		done, err := w.claim(w.b, queue.Settlement{ID: held.ID, Fence: held.Fence})
		must(t, err)
		if len(done.Void) != 0 {
			t.Error("its claim was void")
		}
		w.idle(w.b)
		if !w.beat(w.a).Monitor {
			t.Fatal("a is no monitor any more")
		}
		began := time.Now()
		if l := w.dies(time.Second); !l.Suspected {
			t.Fatalf("%+v", l)
		}
		if took := time.Since(began); took < 2*lookAlone || took > 3*lookAlone {
			t.Errorf("the second suspicion took %v", took)
		}
		if got := w.suspects("b"); strings.Fields(got)[2] != "1" {
			t.Errorf("noted: %s", got)
		}
	})
}

// With sticky it does not take the lead back.
func TestLook_leadsOnWithSticky(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		w := &tower{rig: r, ears: map[string]func(){}}
		w.b = r.up("b", "v1", sticky)
		w.a = r.up("a", "v1", sticky)
		w.wantLeader("b")
		w.listen(w.a)
		w.listen(w.b)
		w.beat(w.b)
		w.beat(w.a)
		w.idle(w.a)
		w.dies(time.Second)
		w.wantLeader("a")
		w.listen(w.b)
		w.beat(w.b)
		w.wantLeader("a")
	})
}

// Leases may differ, for example while a rollout changes the setting. A leader that lives is not suspected between two of its
// heartbeats because those of the monitor are more frequent.
func TestLook_goesByTheLeaseOfTheLeader(t *testing.T) {
	t.Parallel()
	const lease = 30 * time.Second
	towers(t, func(t *testing.T, w *tower) {
		w.enqueue("held")
		w.wantClaims(w.b, 1)
		must(t, w.rdb.Del(t.Context(), w.q.Keys().Watch).Err()) // b is busy, so that it does not watch
		for range 10 {
			w.beat(w.b)
			w.beat(w.a)
			if l := w.watches(lease / 5); l.Suspected {
				t.Fatalf("suspected: %+v", l)
			}
		}
		if l := w.watches(lease); !l.Suspected {
			t.Fatalf("silent for half of its lease: %+v", l)
		}
	}, func(c *Config) { c.Lease = lease })
}

// An instance that may not lead looks at nobody.
func TestMonitor_isACandidate(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		w := &tower{rig: r, ears: map[string]func(){}}
		w.b = r.up("b", "")
		w.a = r.up("a", "", standby)
		starting := r.join("c", "")
		for _, m := range []member{w.a, w.b, starting} {
			w.listen(m)
			if w.beat(m).Monitor {
				t.Errorf("%s is the monitor", m.id)
			}
		}
		w.deaf("b")
		for range 5 {
			time.Sleep(lookAlone)
			if l := w.look(); l.Suspected || l.Monitor {
				t.Fatalf("%+v", l)
			}
		}
	})
}

// Others take the place of a monitor that leaves, drains, or is late.
func TestMonitor_isReplaced(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(w *tower){
		"leaves": func(w *tower) { w.leave(w.a) },
		"drains": func(w *tower) { w.resign(w.a) },
		"is deaf": func(w *tower) {
			w.deaf("a")
			if w.beat(w.a).Monitor {
				w.Error("a deaf monitor keeps its place")
			}
		},
		"late": func(*tower) { time.Sleep(time.Minute/5 + lookLate + time.Millisecond) }, // its lease is a minute
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
				c := r.up("c", "v0")
				w := newTower(t, r)
				w.listen(c)
				if w.beat(c).Monitor {
					t.Fatal("two monitors")
				}
				gone(w)
				if !w.beat(c).Monitor {
					t.Fatal("nobody took its place")
				}
				if name == "late" && w.look().Monitor {
					t.Error("it still looks")
				}
			})
		})
	}
}

// A request to resign is not forgotten because the others are suspected for a moment.
func TestLook_aRequestToResignSurvivesAWrongSuspicion(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		w := &tower{rig: r, ears: map[string]func(){}}
		w.b = r.up("b", "v1")
		w.a = r.up("a", "v2")
		w.askResign(w.a)
		w.wantLeader("b")
		w.listen(w.a)
		w.listen(w.b)
		w.beat(w.b)
		w.beat(w.a)
		w.idle(w.b)
		w.dies(time.Second)
		w.wantLeader("a")
		w.listen(w.b)
		w.beat(w.b)
		w.wantLeader("b")
	})
}

// A damaged entry counts as absent, and is written anew.
func TestLook_damagedSuspicions(t *testing.T) {
	t.Parallel()
	towers(t, func(t *testing.T, w *tower) {
		for _, rubbish := range []string{"", "x", "1 1 0 0 5", "99999999999999999999 1 0 0 5", w.suspects("b") + "9999999999999999999"} {
			must(t, w.rdb.HSet(w.Context(), w.q.Keys().Suspects, "b", rubbish).Err())
			w.look()
			w.beat(w.b)
			w.wantLeader("b")
			if got := w.suspects("b"); !strings.HasSuffix(got, " 1 0 0 0") {
				t.Errorf("%q became %q", rubbish, got)
			}
		}
	})
}

// Suspects is no larger than the instances that are registered.
func TestPromise10_suspectsLeave(t *testing.T) {
	t.Parallel()
	towers(t, func(t *testing.T, w *tower) {
		w.leave(w.a)
		w.expire(w.b, time.Second)
		w.up("c", "")
		if n := w.rdb.HLen(context.WithoutCancel(t.Context()), w.q.Keys().Suspects).Val(); n != 0 {
			t.Errorf("%d entries", n)
		}
	})
}
