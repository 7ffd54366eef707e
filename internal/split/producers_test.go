package split_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/producer"
)

// A process that only adds tasks learns of a new limit too. An old answer outlasts a Redis that is away.
func TestProducers_askAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked int
		var answer []string
		var away error
		ask := func(context.Context) ([]string, error) { asked++; return answer, away }
		p := split.NewProducers(ask, make([]*producer.Producer, 3))
		open := func(after time.Duration, wantAsked int, wantLimited bool) {
			t.Helper()
			time.Sleep(after)
			if err := p.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
			if limited := p.Map().Limited("few"); asked != wantAsked || limited != wantLimited {
				t.Errorf("asked %d times, want %d; limited %v, want %v", asked, wantAsked, limited, wantLimited)
			}
		}
		open(0, 1, false)
		answer = []string{"few"}
		open(9*time.Second, 1, false)
		open(time.Second, 2, true)
		answer, away = nil, errors.New("away")
		open(10*time.Second, 3, true)
		open(0, 3, true) // no call after that one waits for a Redis that is away
		away = nil
		open(10*time.Second, 4, false)

		one := split.NewProducers(ask, make([]*producer.Producer, 1))
		for range 2 {
			if err := one.Open(t.Context()); err != nil || asked != 5 {
				t.Errorf("of one partition: asked %d times, %v", asked, err)
			}
			time.Sleep(time.Hour)
		}
	})
}

// While one caller waits for an answer, the others go on with the old one. That caller does not wait for long.
func TestProducers_askAgainAndHoldUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs, asked := false, 0
		p := split.NewProducers(func(ctx context.Context) ([]string, error) {
			if asked++; hangs {
				<-ctx.Done()
			}
			return nil, ctx.Err()
		}, make([]*producer.Producer, 3))
		open := func() time.Duration {
			began := time.Now()
			if err := p.Open(t.Context()); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		open()
		hangs = true
		time.Sleep(time.Minute)
		waited := make(chan time.Duration)
		go func() { waited <- open() }()
		synctest.Wait()
		if d := open(); d != 0 {
			t.Errorf("another caller waited %s", d)
		}
		if d := <-waited; d == 0 || d > time.Second {
			t.Errorf("the one who asks waited %s", d)
		}

		time.Sleep(time.Minute)
		short, done := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer done()
		if err := p.Open(short); err != nil {
			t.Error(err)
		}
		hangs, asked = false, 0
		open()
		if asked != 0 {
			t.Error("another asks at once")
		}
		time.Sleep(time.Second)
		open()
		if asked != 1 {
			t.Errorf("asked %d times a second after a caller gave up", asked)
		}
	})
}
