package store

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestSuspicion(t *testing.T) {
	t.Parallel()
	now := time.Now()
	type word struct {
		after time.Duration
		of    string
		n     int
		held  bool
	}
	for name, words := range map[string][]word{
		"all are there":             {{0, "a", 2, false}, {time.Second, "a", 2, false}},
		"one comes":                 {{0, "a", 1, false}, {0, "a", 2, false}},
		"one leaves for good":       {{0, "a", 2, false}, {0, "a", 1, true}, {suspectFor - 1, "a", 1, true}, {1, "a", 1, false}, {0, "a", 1, false}},
		"one leaves, then another":  {{0, "a", 2, false}, {0, "a", 1, true}, {suspectFor, "a", 0, false}},
		"it comes and goes":         {{0, "a", 2, false}, {0, "a", 1, true}, {0, "a", 2, false}, {suspectFor, "a", 1, false}, {0, "a", 2, false}, {suspectRest, "a", 1, true}},
		"an older answer is later":  {{0, "a", 2, false}, {0, "a", 1, true}, {0, "a", 2, false}, {time.Millisecond, "a", 1, true}, {suspectFor, "a", 1, false}},
		"another is the primary":    {{0, "a", 2, false}, {0, "a", 1, true}, {0, "b", 0, false}, {0, "b", 1, false}, {0, "a", 1, true}, {0, "b", 0, true}, {suspectFor, "a", 1, false}},
		"the last one leaves later": {{0, "a", 1, false}, {time.Hour, "a", 0, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s suspicion
			at := now
			for i, w := range words {
				at = at.Add(w.after)
				if err := s.heard(w.of, w.n, true, at); errors.Is(err, ErrSuspect) != w.held {
					t.Errorf("word %d: %v, want that it is held back: %v", i, err, w.held)
				}
			}
		})
	}
	var s suspicion
	if err := s.heard("", 0, false, now); err != nil || s.looks() {
		t.Errorf("who may not ask: %v, and asks again: %v", err, s.looks())
	}
	if err := s.heard("", 0, false, now.Add(-time.Hour)); err != nil || !s.looks() {
		t.Errorf("who might not ask long ago: %v, and asks again: %v", err, s.looks())
	}
	for i := range 100 {
		_ = s.heard(fmt.Sprint(i), i, true, now.Add(time.Duration(i)))
	}
	if n := len(s.primaries); n != mostPrimaries || s.primaries["99"] == nil {
		t.Errorf("%d primaries are remembered", n)
	}
}

func TestReplicas(t *testing.T) {
	t.Parallel()
	of, n, ok := replicas("# Replication\r\nrole:master\r\nconnected_slaves:3\r\nslave0:ip=127.0.0.1,port=1,state=online,offset=9\r\n" +
		"slave1:ip=127.0.0.1,port=0,state=wait_bgsave,offset=0\r\nslave3:ip=127.0.0.1,port=0,state=online,offset=0\r\nslave2:ip=127.0.0.1,port=2,state=online\r\nmaster_replid:abc\r\n")
	if of != "abc" || n != 2 || !ok {
		t.Errorf("%q, %d, %v", of, n, ok)
	}
	for _, text := range []string{"", "role:master\n", "master_replid:a\n", "connected_slaves:1\n"} {
		if _, _, ok := replicas(text); ok {
			t.Errorf("%q was read", text)
		}
	}
}
