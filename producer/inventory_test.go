package producer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// lastRun is one that was stored.
const lastRun = "1700000000001 1700000000000 5 1690000000000 0"

// textOf is the definition as it is stored.
func textOf(t testing.TB, origin, release string, s Schedule, keys *seal.Keys) string {
	t.Helper()
	d := definition{definitionHead{V: definitionVersion, Origin: origin, Release: release}, s}.sealedWith(keys)
	text, err := d.encode()
	must(t, err)
	return text
}

func keysOf(t testing.TB, openOnly bool, ids ...string) *seal.Keys {
	t.Helper()
	c := task.Encryption{OpenOnly: openOnly}
	for _, id := range ids {
		c.Keys = append(c.Keys, task.EncryptionKey{ID: id, Secret: bytes.Repeat([]byte(id[:1]), task.EncryptionKeyBytes)})
	}
	k, err := seal.New(c, "test")
	must(t, err)
	return k
}

// A schedule that is stored as it is declared is settled, whichever release wrote it, and in whatever order. Others are compared, as ever.
func TestInventory_settled(t *testing.T) {
	t.Parallel()
	s := Schedule{Name: "s", Rule: schedule.Every(time.Minute), Task: "t", Payload: []byte(`{"a": "<b>"}`), Queue: "q"}
	plain := textOf(t, Declared, "v1", s, nil)
	other := s
	other.Timeout = time.Second
	bare := s
	bare.Payload = nil
	boxed := bare
	boxed.sealed = &task.Sealed{Key: "9"}
	k1, k2, both, open := keysOf(t, false, "1"), keysOf(t, false, "2"), keysOf(t, false, "2", "1"), keysOf(t, true, "1")
	for what, c := range map[string]struct {
		declared   Schedule // default s
		text, last string
		keys       *seal.Keys
		want       bool
	}{
		"same release":                        {text: textOf(t, Declared, "v2", s, nil), want: true},
		"another release":                     {text: plain, want: true},
		"no release":                          {text: textOf(t, Declared, "", s, nil), want: true},
		"another order":                       {text: `{"every":"1m","queue":"q","payload":{"a":"<b>"},"task":"t","name":"s","origin":"declared","v":1}`, want: true},
		"a new field of the head":             {text: strings.Replace(plain, `,"name"`, `,"colour":"blue","name"`, 1), want: true},
		"a new field of the rule":             {text: strings.Replace(plain, `,"every"`, `,"colour":"blue","every"`, 1), want: true},
		"applied":                             {text: textOf(t, Applied, "", s, nil)},
		"another timeout":                     {text: textOf(t, Declared, "v1", other, nil)},
		"another timeout, before the rest":    {text: strings.Replace(plain, `,"name"`, `,"timeout":"5ms","name"`, 1)},
		"no payload any more, which is open":  {declared: bare, text: textOf(t, Declared, "v1", s, k1), keys: k1},
		"no payload any more, and no key":     {declared: bare, text: textOf(t, Declared, "v1", s, k1), keys: k2},
		"encrypted where it is declared":      {declared: boxed, text: textOf(t, Declared, "v1", bare, nil)},
		"no payload, and a key seals":         {declared: bare, text: textOf(t, Declared, "v1", bare, k1), keys: k1, want: true},
		"a newer format":                      {text: strings.Replace(plain, `"v":1`, `"v":9`, 1)},
		"damaged":                             {text: plain[:20]},
		"an invalid head":                     {text: strings.Replace(plain, `"v":1`, `"v":"1"`, 1)},
		"a damaged last run":                  {text: plain, last: "x"},
		"no last run":                         {text: plain, last: "-"},
		"plain, and a key seals":              {text: plain, keys: k1},
		"plain, and the keys only open":       {text: plain, keys: open, want: true},
		"encrypted with the key of today":     {text: textOf(t, Declared, "v1", s, k1), keys: k1, want: true},
		"encrypted with an earlier key":       {text: textOf(t, Declared, "v1", s, k1), keys: both},
		"encrypted, and the keys only open":   {text: textOf(t, Declared, "v1", s, k1), keys: open},
		"encrypted with a key of others":      {text: textOf(t, Declared, "v1", s, k1), keys: k2},
		"encrypted, and there are no keys":    {text: textOf(t, Declared, "v1", s, k1)},
		"another timeout, encrypted, the key": {text: textOf(t, Declared, "v1", other, k1), keys: k1},
	} {
		if c.declared.Name == "" {
			c.declared = s
		}
		inv := newInventory([]Schedule{{Name: "r", Task: "t"}, c.declared.AsStored()})
		st := queue.Stored{Name: "s", Definition: c.text, Last: lastRun, Seal: c.keys}
		switch c.last {
		case "-":
			st.Last = ""
		case "x":
			st.Last = "x"
		}
		e, err := inv.take(st)
		want, wantErr := newEntry(st)
		if (err == nil) != (wantErr == nil) || !reflect.DeepEqual(e, want) {
			t.Errorf("%s: entry %+v, %v; decoded it is %+v, %v", what, e, err, want, wantErr)
		}
		names := fmt.Sprint(len(inv.differing()), len(inv.stored), inv.has("s"), inv.has("r"))
		if want := map[bool]string{true: "1 0 true false", false: "2 1 true false"}[c.want]; names != want {
			t.Errorf("%s: differing, stored, has s, has r: %s, want %s", what, names, want)
		}
	}
}

// A schedule that changes while all are read may be read twice. The later reading counts.
func TestInventory_readTwice(t *testing.T) {
	t.Parallel()
	s := every(time.Minute)
	other := every(time.Hour)
	inv := newInventory([]Schedule{s})
	for i, now := range []Schedule{s, other, s, other} {
		_, err := inv.take(queue.Stored{Name: "s", Definition: textOf(t, Declared, "", now, nil), Last: lastRun})
		must(t, err)
		if n := len(inv.differing()); n != i%2 || len(inv.stored) != i%2 || !inv.has("s") {
			t.Errorf("reading %d: %d differ, %d stored", i, n, len(inv.stored))
		}
	}
}

// The entry of a schedule that is stored as it is declared is the one that decoding makes, whatever the release declares. It shares
// nothing with the declaration that may change.
func TestInventory_readsAsDecodingReads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		span := func(name string, unit time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(0, 1e6).Draw(r, name)) * unit
		}
		s := Schedule{
			Name: "s", Task: rapid.StringMatching(`[a-z][a-z.]{0,8}`).Draw(r, "task"), Queue: rapid.StringMatching(`[a-z]{0,5}`).Draw(r, "queue"),
			Priority: rapid.SampledFrom([]task.Priority{task.Low, task.Normal, task.High}).Draw(r, "priority"),
			Secret:   rapid.SampledFrom([][]string{nil, {}, {"a.b"}, {"a", "c"}}).Draw(r, "secret"),
			Payload:  json.RawMessage(rapid.SampledFrom([]string{"", "null", "1", `"<&>"`, " {\"a\" : [ 1, 2 ] } ", "{\"a\":\"\u2028\"}"}).Draw(r, "payload")),
			Timeout:  span("timeout", time.Millisecond), MaxAttempts: rapid.IntRange(0, 50).Draw(r, "attempts"),
			Backoff: task.Backoff{Base: span("base", time.Millisecond), Cap: span("cap", time.Millisecond)},
			Rule: schedule.Rule{
				MaxRuns: rapid.Int64Range(0, 9).Draw(r, "runs"), Missed: rapid.SampledFrom([]schedule.Missed{"", schedule.MissedAll}).Draw(r, "missed"),
				Jitter: span("jitter", time.Millisecond), CatchUp: span("catch up", time.Second),
				Overlap: rapid.SampledFrom([]schedule.Overlap{"", schedule.OverlapSkip}).Draw(r, "overlap"),
				Start:   rapid.SampledFrom([]string{"", "2024-01-01T00:00:00Z"}).Draw(r, "start"),
			},
		}
		if rapid.Bool().Draw(r, "cron") {
			s.Cron, s.Timezone = "*/5 * * * *", rapid.SampledFrom([]string{"", "Asia/Seoul"}).Draw(r, "zone")
		} else {
			s.Every = 1000*time.Second + span("every", time.Millisecond)
		}
		if rapid.Bool().Draw(r, "until") {
			s.Until = epoch.AddDate(9, 0, 0).In(time.FixedZone("x", 3600))
		}
		st := queue.Stored{
			Name: "s", Definition: textOf(t, Declared, rapid.SampledFrom([]string{"", "v1", "v2"}).Draw(r, "release"), s, nil), Last: lastRun,
			Behind: rapid.SampledFrom([]string{"", "1690000000000 x 1690000000000 1690000005000"}).Draw(r, "behind"),
		}
		inv := newInventory([]Schedule{s.AsStored()})
		got, err := inv.take(st)
		if err != nil || !inv.settled[0] {
			r.Fatalf("%s: settled %v, %v", st.Definition, inv.settled, err)
		}
		for i := range s.Payload {
			s.Payload[i] = '!'
		}
		for i := range s.Secret {
			s.Secret[i] = "changed"
		}
		want, err := newEntry(st)
		if err != nil || !reflect.DeepEqual(got, want) {
			r.Fatalf("%s reads\n%+v %+v, decoded\n%+v %+v, %v", st.Definition, got, got.s, want, want.s, err)
		}
	})
}

// Another leader writes nothing but its own declaration if the stored schedules are the same. It makes only those anew that differ, and
// keeps no second copy of the schedules.
func TestTakeStock_changesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	ctx := t.Context()
	list := make([]Schedule, 5)
	for i := range list {
		list[i] = every(time.Hour)
		list[i].Name = fmt.Sprint("s", i)
	}
	one := w.lead("one", "v1", func() []Schedule { return list })
	must(t, one.takeStock(ctx))
	stored := func() map[string]string { return w.rdb.HGetAll(ctx, w.q.Keys().Schedules).Val() }
	was, revisions := stored(), w.rdb.HGetAll(ctx, w.q.Keys().Revisions).Val()

	two := w.lead("two", "v2", func() []Schedule { return list })
	must(t, two.takeStock(ctx))
	if now := stored(); len(now) != 5 || !reflect.DeepEqual(now, was) || !reflect.DeepEqual(w.rdb.HGetAll(ctx, w.q.Keys().Revisions).Val(), revisions) {
		t.Errorf("the same again: %v, was %v", now, was)
	}
	if len(two.entries) != 5 || len(two.plan) != 5 || two.before.entries != nil || two.memory.entries != nil {
		t.Errorf("%d entries, %d in the plan; before: %d, remembered: %d", len(two.entries), len(two.plan), len(two.before.entries), len(two.memory.entries))
	}

	next := slices.Clone(list[1:])
	next[0].Every = time.Minute
	three := w.lead("three", "v3", func() []Schedule { return next })
	must(t, three.takeStock(ctx))
	now := stored()
	if len(now) != 4 || now["s0"] != "" || !strings.Contains(now["s1"], `"release":"v3"`) || three.entries["s1"].s.Every != time.Minute {
		t.Errorf("after a change: %v", now)
	}
	for i := range next {
		if s := &next[i]; three.entries[s.Name].s != s {
			t.Errorf("%s is kept twice: as it is declared, and as it was read", s.Name)
		}
	}
	for _, name := range []string{"s2", "s3", "s4"} {
		if now[name] != was[name] {
			t.Errorf("%s was written anew: %s", name, now[name])
		}
	}
}
