package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// told is a program that signals ask to stop.
type told struct {
	context.Context
	signals chan os.Signal
	said    bytes.Buffer
	exits   []int
}

func newTold() *told {
	p := &told{signals: make(chan os.Signal, 2)}
	p.Context = untilTold(context.Background(), p.signals, &p.said, func(code int) { p.exits = append(p.exits, code) })
	return p
}

// signal sends one, and waits until it has been taken in.
func (p *told) signal() {
	p.signals <- os.Interrupt
	synctest.Wait()
}

func TestUntilTold_endsTheContextThenTheProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newTold()
		p.signal()
		if !errors.Is(context.Cause(p), errTold) || !errors.Is(p.Err(), context.Canceled) || len(p.exits) > 0 {
			t.Fatalf("after the first: %v, %v", context.Cause(p), p.exits)
		}
		time.Sleep(sameSignal)
		p.signal()
		if len(p.exits) > 0 {
			t.Error("a signal soon after the first is a request of its own")
		}
		time.Sleep(time.Millisecond)
		p.signal()
		if len(p.exits) != 1 || p.exits[0] != exitFailed {
			t.Errorf("after the second: %v", p.exits)
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
			if len(p.exits) > 0 {
				t.Fatal("it is ended and not told to hurry")
			}
			then(p)
			if len(p.exits) != 1 || p.exits[0] != exitFailed || !strings.Contains(p.said.String(), "stopped before all was handed back") {
				t.Errorf("%s: exits %v, and says %q", name, p.exits, p.said.String())
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
