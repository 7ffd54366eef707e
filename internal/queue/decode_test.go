package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// claimReply is what cycle.lua returns for n tasks of one lane.
func claimReply(n int) []any {
	var ids, records, sizes []string
	for i := range n {
		t := task.New("job", []byte(strings.Repeat("x", 64)))
		rec := task.Encode(nil, t)
		ids = append(ids, task.NewID(time.Unix(1700000000, int64(i))))
		sizes, records = append(sizes, fmt.Sprint(len(rec))), append(records, string(rec))
	}
	return []any{
		int64(1_700_000_000_000_000), int64(-1), int64(1), int64(1), int64(1_700_000_000_000_000), "", int64(0), "", "", int64(1), int64(n),
		fmt.Sprint("20*", n), strings.Join(ids, ""), fmt.Sprint("1700000000000*", n), strings.Join(sizes, ","), strings.Join(records, ""),
	}
}

var claimRequest = &CycleRequest{Instance: "a", Lanes: []LaneClaim{{Lane: Lane{Queue: "default", Type: "job"}}}}

func TestDecodeCycle_refusesWhatIsNoReply(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		nil, "text", []any{}, []any{int64(1)}, []any{"x", int64(1), int64(1), int64(1), int64(1), "", int64(0), "", ""},
		[]any{int64(1), nil, int64(1), int64(1), int64(1), "", int64(0), "", ""},
		[]any{int64(1), int64(1), int64(1), int64(1), int64(1), int64(9), int64(0), "", ""},
		claimReply(2)[:12],
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

func TestDecodeCycle_readsSeries(t *testing.T) {
	t.Parallel()
	rec := string(task.Encode(nil, task.New("job", []byte("x"))))
	v := []any{
		int64(1), int64(-1), int64(1), int64(1), int64(7), "", int64(0), "", "", int64(1), int64(4),
		"1,2*2,1", "abbccd", "1000*2,2000,1.7e+12", fmt.Sprintf("%d*2,%d,%d", len(rec), len(rec)-1, len(rec)), rec + rec + rec[1:] + rec,
	}
	r, err := decodeCycle(store.NewReply(v), claimRequest, nil)
	if err != nil || len(r.Claimed) != 3 || len(r.Malformed) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, want := range []struct {
		id  string
		due int64
	}{{"a", 1000}, {"bb", 1000}, {"d", 1_700_000_000_000}} {
		if c := r.Claimed[i]; c.ID != want.id || c.Due.UnixMilli() != want.due {
			t.Errorf("task %d is %s, due %v; want %+v", i, c.ID, c.Due, want)
		}
	}
	if m := r.Malformed[0]; m.ID != "cc" || m.Record != rec[1:] {
		t.Errorf("malformed: %+v", m)
	}
}

func FuzzDecodeCycle(f *testing.F) {
	r := claimReply(2)
	f.Add(int64(1), int64(2), "", r[11].(string), r[12].(string), r[13].(string), r[14].(string), r[15].(string))
	f.Add(int64(1), int64(3), "1,x,-1,9", "1,*,-5*2", "ab", "1*x", "-5,999*0", "1.")
	f.Add(int64(0), int64(9e18), "", "", "", "", "", "")
	f.Fuzz(func(t *testing.T, lane, n int64, void, idSizes, ids, dues, sizes, records string) {
		v := []any{int64(1), int64(5), int64(7), int64(1), int64(1), void, int64(0), "", "", lane, n, idSizes, ids, dues, sizes, records}
		out, err := decodeCycle(store.NewReply(v), claimRequest, []int{0, 1})
		if err != nil {
			return
		}
		for _, i := range out.Void {
			if i < 0 || i > 1 {
				t.Errorf("void %d", i)
			}
		}
		if got := len(out.Claimed) + len(out.Malformed); lane == 1 && n > 0 && n <= MaxBatch && got != int(n) {
			t.Errorf("%d tasks, not %d, of %q", got, n, ids)
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

// A page of entries with large outputs is followed by smaller ones, and never by none.
func TestNextPage_boundsTheBytesOfACall(t *testing.T) {
	t.Parallel()
	rows := func(n, size int) []redis.XMessage {
		return slices.Repeat([]redis.XMessage{{Values: map[string]any{"facts": strings.Repeat("x", size)}}}, n)
	}
	for _, tt := range []struct {
		rows []redis.XMessage
		want int64
	}{
		{nil, 1}, {rows(50, 100), historyPage}, {rows(50, 1<<20), 7}, {rows(1, 64<<20), 1}, {rows(7, 1), historyPage},
	} {
		if got := nextPage(tt.rows); got != tt.want {
			t.Errorf("after %d entries: %d, want %d", len(tt.rows), got, tt.want)
		}
	}
}
