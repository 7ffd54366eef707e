package queue

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/task"
)

// claimReply is what cycle.lua returns for n tasks of one lane.
func claimReply(n int) []any {
	var ids, dues, lengths, records []string
	for i := range n {
		t := task.New("job", []byte(strings.Repeat("x", 64)))
		rec := task.Encode(nil, t)
		ids = append(ids, task.NewID(time.Unix(1700000000, int64(i))))
		dues = append(dues, fmt.Sprint(1_700_000_000_000+i))
		lengths, records = append(lengths, fmt.Sprint(len(rec))), append(records, string(rec))
	}
	return []any{
		int64(1_700_000_000_000_000), int64(-1), int64(1), int64(1), int64(1_700_000_000_000_000), "", int64(0), int64(1),
		strings.Join(ids, "\n"), strings.Join(dues, "\n"), strings.Join(lengths, "\n"), strings.Join(records, ""),
	}
}

var claimRequest = &CycleRequest{Instance: "a", Lanes: []LaneClaim{{Lane: Lane{Queue: "default", Type: "job"}}}}

func TestDecodeCycle_refusesWhatIsNoReply(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		nil, "text", []any{}, []any{int64(1)}, []any{"x", int64(1), int64(1), int64(1), int64(1), "", int64(0)},
		[]any{int64(1), nil, int64(1), int64(1), int64(1), "", int64(0)},
		[]any{int64(1), int64(1), int64(1), int64(1), int64(1), int64(9), int64(0)},
		claimReply(2)[:10],
	} {
		if r, err := decodeCycle(store.NewReply(v), claimRequest, nil); err == nil {
			t.Errorf("%v was read as %+v", v, r)
		}
	}
	for _, f := range []func(*store.Reply) any{
		func(r *store.Reply) any { return r.Indexes() }, func(r *store.Reply) any { return r.Text() }, func(r *store.Reply) any { return r.Int() },
	} {
		r := store.NewReply([]any{1.5})
		if f(r); r.Err == nil {
			t.Error("a float was read")
		}
	}
}

func FuzzDecodeCycle(f *testing.F) {
	r := claimReply(2)
	f.Add(int64(1), "", r[8].(string), r[9].(string), r[10].(string), r[11].(string))
	f.Add(int64(1), "1,x,-1,9", "a\nb", "1", "-5\n999", "1.")
	f.Add(int64(0), "", "", "", "", "")
	f.Fuzz(func(t *testing.T, lane int64, void, ids, dues, lengths, records string) {
		v := []any{int64(1), int64(5), int64(7), int64(1), int64(1), void, int64(0), lane, ids, dues, lengths, records}
		out, err := decodeCycle(store.NewReply(v), claimRequest, []int{0, 1})
		if err != nil {
			return
		}
		for _, i := range out.Void {
			if i < 0 || i > 1 {
				t.Errorf("void %d", i)
			}
		}
		if n := len(out.Claimed) + len(out.Malformed); lane == 1 && n != strings.Count(ids, "\n")+1 {
			t.Errorf("%d tasks of %q", n, ids)
		}
		for _, m := range out.Malformed {
			if !errors.Is(m.Err, task.ErrRecord) {
				t.Errorf("malformed for %v", m.Err)
			}
		}
	})
}

func TestParseScore(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int64{"5": 5, "1.7e+12": 1_700_000_000_000, "5.9": 5} {
		if got := parseScore(s); got.UnixMilli() != want {
			t.Errorf("%s: %v", s, got)
		}
	}
	for _, s := range []string{"", "x", "inf", "nan"} {
		if got := parseScore(s); !got.IsZero() {
			t.Errorf("%s: %v", s, got)
		}
	}
}

func BenchmarkDecodeClaim(b *testing.B) {
	v := claimReply(100)
	b.ReportAllocs()
	for b.Loop() {
		if r, err := decodeCycle(store.NewReply(v), claimRequest, nil); err != nil || len(r.Claimed) != 100 {
			b.Fatal(err)
		}
	}
}

func BenchmarkSettleArgs(b *testing.B) {
	settle := make([]Settlement, 100)
	for i := range settle {
		settle[i] = Settlement{ID: task.NewID(time.Unix(1700000000, int64(i))), Fence: 1_700_000_000_000_000 + int64(i/50)} // of two claims
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, args, err := appendSettlements(make([]any, 0, 512), settle, nil); err != nil || len(args) != 111 {
			b.Fatal(len(args), err)
		}
	}
}
