package admin

import (
	"testing"

	"github.com/onbeat/onbeat/producer"
)

func TestJudge_hasTheSchedulesThatAreBehindOrStale(t *testing.T) {
	t.Parallel()
	var s tally
	s.judge([]producer.Stale{{Schedule: "stale", Ratio: 4}, {Schedule: "fresh", Ratio: 2}}, map[string]int64{"little": 1, "much": 30})
	want := []Trouble{{Schedule: "much", Kind: "behind", Slots: 30}, {Schedule: "little", Kind: "behind", Slots: 1}, {Schedule: "stale", Kind: "stale", Ratio: 4}}
	if len(s.Troubles) != len(want) || s.TroublesInAll != len(want) {
		t.Fatalf("%+v", s.Troubles)
	}
	for i := range want {
		if s.Troubles[i] != want[i] {
			t.Errorf("trouble %d: %+v, want %+v", i, s.Troubles[i], want[i])
		}
	}
}
