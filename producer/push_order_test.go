package producer

import (
	"fmt"
	"testing"
	"time"
)

// Slots of the same moment are pushed in the order of the names of their schedules, and never before an earlier one.
func TestInOrder_sortsByMomentThenName(t *testing.T) {
	t.Parallel()
	at := func(name string, ms int64) move {
		return move{e: &entry{s: &Schedule{Name: name}, next: time.UnixMilli(ms)}}
	}
	moves := []move{at("c", 2), at("b", 2), at("z", 1), at("a", 2), at("a", 3)}
	inOrder(moves)
	got := ""
	for _, m := range moves {
		got += fmt.Sprint(m.e.s.Name, m.e.next.UnixMilli(), " ")
	}
	if want := "z1 a2 b2 c2 a3 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
