package testredis

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestMini_worksInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := Mini(t)
		if err := m.Client.Set(t.Context(), "k", "v", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		before, err := m.Client.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(61 * time.Minute)
		after, err := m.Client.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if got := after.Sub(before); got != 61*time.Minute {
			t.Errorf("TIME moved by %v, want 61m", got)
		}
		if n, err := m.Client.Exists(t.Context(), "k").Result(); n != 0 || err != nil {
			t.Errorf("the key outlived its hour: %d, %v", n, err)
		}
	})
}

func TestMini_wakesSubscribersInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := Mini(t)
		sub := m.Client.Subscribe(t.Context(), "wake")
		defer sub.Close()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Minute)
			m.Dialed(t).Publish(t.Context(), "wake", "now")
		}()
		start := time.Now()
		msg, err := sub.ReceiveMessage(t.Context())
		if err != nil || msg.Payload != "now" || time.Since(start) != time.Minute {
			t.Errorf("message %v, %v after %v; want now after 1m", msg, err, time.Since(start))
		}
	})
}

func TestMini_setTimeMovesTimeAndExpiry(t *testing.T) {
	t.Parallel()
	m := Mini(t)
	at := time.Date(2031, 5, 4, 3, 2, 1, 0, time.UTC)
	m.SetTime(at)
	if got, err := m.Client.Time(t.Context()).Result(); !got.Equal(at) || err != nil {
		t.Errorf("TIME = %v, %v; want %v", got, err, at)
	}
	if err := m.Client.Set(t.Context(), "k", "v", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	m.SetTime(at.Add(2 * time.Hour))
	if n, err := m.Client.Exists(t.Context(), "k").Result(); n != 0 || err != nil {
		t.Errorf("after two hours: %d, %v; want the key gone", n, err)
	}
}
