package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// told is a program to which a test sends signals.
type told struct {
	context.Context
	signals chan os.Signal
	said    lockedBuffer // also its exit codes
}

func newTold() *told {
	p := &told{signals: make(chan os.Signal, 2)}
	p.Context = untilTold(context.Background(), p.signals, &p.said, func(code int) { fmt.Fprintf(&p.said, "exit %d\n", code) })
	return p
}

// signal sends a signal, and waits until the program has received it.
func (p *told) signal() {
	p.signals <- os.Interrupt
	synctest.Wait()
}

func TestUntilTold_endsTheContextThenTheProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newTold()
		p.signal()
		if !errors.Is(context.Cause(p), errTold) || !errors.Is(p.Err(), context.Canceled) || p.said.String() != "" {
			t.Fatalf("after the first: %v, %s", context.Cause(p), p.said.String())
		}
		time.Sleep(sameSignal)
		p.signal()
		if p.said.String() != "" {
			t.Error("a signal soon after the first is a request of its own")
		}
		time.Sleep(time.Millisecond)
		p.signal()
		if p.said.String() != "exit 1\n" {
			t.Errorf("after the second: %s", p.said.String())
		}
	})
}

func TestUntilTold_letsACommandHurry(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(*told){
		"a third signal": (*told).signal,
		"too long":       func(*told) { time.Sleep(hurryTime); synctest.Wait() },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newTold()
			hurry := hurryOf(p)
			p.signal()
			time.Sleep(2 * sameSignal)
			select {
			case <-hurry:
				t.Fatal("it is to hurry after one signal")
			default:
			}
			p.signal()
			select {
			case <-hurry:
			default:
				t.Error("it is not told to hurry")
			}
			if p.said.String() != "" {
				t.Fatal("it is ended and not told to hurry")
			}
			then(p)
			if said := p.said.String(); !strings.Contains(said, "stopped before all running tasks were handed back") || !strings.HasSuffix(said, "\nexit 1\n") {
				t.Errorf("%s: says %q", name, said)
			}
		})
	}
}

func TestHurryOf_isNeverWhereNobodyAsks(t *testing.T) {
	t.Parallel()
	if hurryOf(t.Context()) != nil {
		t.Error("it is told to hurry by nobody")
	}
}
