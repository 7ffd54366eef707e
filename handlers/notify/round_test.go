package notify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
)

var start = time.UnixMilli(1_700_000_040_000).UTC() // a multiple of a minute

// story is a round that is told what happens, in time that passes as the test says.
type story struct {
	*testing.T
	r  *round
	at time.Time
	n  int
}

func newStory(t *testing.T, targets ...Target) *story {
	r := newRound(time.Minute)
	for _, one := range targets {
		own := one.withDefaults()
		r.targets = append(r.targets, &own)
	}
	r.place = position{UpTo: start.UnixMilli()}
	return &story{T: t, r: r, at: start}
}

func (s *story) id() string {
	s.n++
	return fmt.Sprintf("%d-%d", s.at.UnixMilli(), s.n)
}

func (s *story) run(task string, word history.Word, err string) {
	line := fmt.Sprintf("%s %s 1 %d", task, word, s.at.UnixMilli())
	e := history.ParseEntry(s.id(), map[string]any{"runs": line, "more": "5 " + err})
	s.r.takeEntry(&e, &s.r.place.Entry)
}

func (s *story) event(kind string, fields ...string) {
	e := queue.Event{ID: s.id(), At: s.at, Kind: kind, Fields: map[string]string{}}
	for i := 0; i+1 < len(fields); i += 2 {
		e.Fields[fields[i]] = fields[i+1]
	}
	s.r.takeEvent(&e)
}

// minute ends the window, as a notifier does, and returns the titles of its messages.
func (s *story) minute(stale ...producer.Stale) []string {
	s.Helper()
	s.at = s.at.Add(time.Minute)
	end, over := s.r.ended(s.at)
	if !over || !end.Equal(s.at) {
		s.Fatalf("the window ends at %v, %v", end, over)
	}
	s.r.judge(end, stale)
	s.r.settle(end)
	c := s.r.change(end)
	var titles []string
	for _, p := range s.r.messages("shop", "", end) {
		titles = append(titles, p.Target+" "+p.Message.Title()+" | "+strings.Join(p.Message.Lines(), " | "))
	}
	s.r.begin(end, c.Set[c.Name])
	slices.Sort(titles)
	return titles
}

func (s *story) same(got []string, want ...string) {
	s.Helper()
	if !slices.Equal(got, want) {
		s.Errorf("\n got %q\nwant %q", got, want)
	}
}

func TestRound_aThousandAreOneMessage(t *testing.T) {
	t.Parallel()
	s := newStory(t, Target{Name: "ops"}, Target{Name: "few", Schedules: []string{"s7*"}})
	var died []queue.Death
	for i := range 1000 {
		died = append(died, queue.Death{ID: fmt.Sprintf("s%d@1700000000000", i), At: s.at})
	}
	died = append(died, queue.Death{ID: Type + ":ops:dead:60000:1", At: s.at}) // a message that could not be sent
	shown := s.r.takeDied(died, s.at.Add(time.Minute))
	if len(shown) != 2*mostNotices {
		t.Errorf("shown: %q", shown)
	}
	s.same(s.minute(),
		"few shop: 111 tasks are dead | s7: dead | s70: dead | s71: dead | s72: dead | s73: dead | and 106 more",
		"ops shop: 1,000 tasks are dead | s0: dead | s1: dead | s2: dead | s3: dead | s4: dead | and 995 more")
	s.same(s.minute())
}

func TestRound_failingIsToldOnceAndRecoveredAfterAWholeWindow(t *testing.T) {
	t.Parallel()
	s := newStory(t, Target{Name: "ops", Failing: 3})
	for range 2 {
		s.run("a@1000", history.Failed, "refused")
	}
	s.same(s.minute())
	s.run("a@1000", history.Dead, "refused")
	s.same(s.minute(), "ops shop: 1 schedule or type fails again and again | a: 3 attempts in a row failed: refused")
	for range 5 { // it flaps
		s.run("a@1000", history.Done, "")
		for range 4 {
			s.run("a@2000", history.Failed, "refused")
		}
		s.same(s.minute())
	}
	s.at = s.at.Add(30 * time.Second)
	s.run("a!aaaaaaaaaaaaaaaaaaaa", history.Done, "")
	s.at = s.at.Add(-30 * time.Second)
	s.same(s.minute())
	s.same(s.minute(), "ops shop: 1 schedule or type has recovered | a: succeeds again since "+s.at.Add(-90*time.Second).Format(time.RFC3339))
	if len(s.r.subjects) != 0 {
		t.Errorf("left: %v", s.r.subjects)
	}
	for range 3 {
		s.run("a@3000", history.Failed, "")
	}
	s.same(s.minute(), "ops shop: 1 schedule or type fails again and again | a: 3 attempts in a row failed")
	s.event("schedule paused", "schedule", "a")
	s.same(s.minute())
	if len(s.r.subjects) != 0 {
		t.Errorf("left: %v", s.r.subjects)
	}
}

// A failure now and then is nothing, and is not kept.
func TestRound_aFailureNowAndThenIsNothing(t *testing.T) {
	t.Parallel()
	s := newStory(t, Target{Name: "ops", Failing: 3})
	for range 10 {
		s.run("a@1000", history.Failed, "")
		s.run("a@1000", history.Done, "")
		s.same(s.minute())
	}
	s.minute()
	if len(s.r.subjects) != 0 {
		t.Errorf("left: %v", s.r.subjects)
	}
}

func TestRound_eachTargetHasItsOwnThreshold(t *testing.T) {
	t.Parallel()
	s := newStory(t, Target{Name: "early", Failing: 2}, Target{Name: "late", Failing: 4}, Target{Name: "dead", On: []Topic{Dead}})
	run := func(n int) {
		for range n {
			s.run("a@1000", history.Failed, "")
		}
	}
	run(3)
	s.same(s.minute(), "early shop: 1 schedule or type fails again and again | a: 3 attempts in a row failed")
	run(3)
	s.same(s.minute(), "late shop: 1 schedule or type fails again and again | a: 6 attempts in a row failed")
}

func TestRound_staleIsToldOnceUntilItSucceeds(t *testing.T) {
	t.Parallel()
	s := newStory(t, Target{Name: "ops", Stale: 3})
	of := func(ratio float64) producer.Stale { return producer.Stale{Schedule: "a", Ratio: ratio} }
	s.same(s.minute(of(2.9)))
	s.same(s.minute(of(3.4)), "ops shop: 1 schedule is stale | a: no success for 3.4 times the gap between its slots")
	s.same(s.minute(of(4.4)))
	s.same(s.minute(of(0.1))) // another leader, which does not know the last success: nothing succeeded
	s.run("a@1000", history.Done, "")
	s.same(s.minute(of(0.5)), "ops shop: 1 schedule or type has recovered | a: succeeds again since "+s.at.Add(-time.Minute).Format(time.RFC3339))
}

func TestRound_missedSlotsOfOneScheduleAreOneNotice(t *testing.T) {
	t.Parallel()
	s := newStory(t, Target{Name: "ops"})
	e := history.ParseEntry(s.id(), map[string]any{"slots": "a@1000..5000 missed 5 outage\nb@1000..1000 missed 1 outage", "runs": "a@6000 missed outage"})
	s.r.takeEntry(&e, &s.r.place.Entry)
	s.same(s.minute(), "ops shop: 7 slots were missed | a: 6 slots were missed | b: 1 slot was missed (outage)")
}

func TestRound_changesOfTheLeaderAreForThoseWhoAsk(t *testing.T) {
	t.Parallel()
	s := newStory(t, Target{Name: "ops"}, Target{Name: "all", On: Topics()})
	s.event("leader", "instance", "x", "release", "v2", "before", "w")
	s.event("no leader", "instance", "x")
	s.event("joined", "instance", "x")
	s.event("notification failed", "target", "ops")
	s.event("archive lost", "entries", "5")
	s.same(s.minute(),
		"all shop: 2 changes of the leader | x (release v2) leads, where w led before | no instance can lead; x led last",
		"all shop: news of the archive, which was behind or lost something | archive lost, entries 5",
		"ops shop: news of the archive, which was behind or lost something | archive lost, entries 5")
}

func TestRound_tellsOfTheArchiveOnceAndWhenItHasCaughtUp(t *testing.T) {
	t.Parallel()
	s := newStory(t, Target{Name: "ops"})
	minute := func(entries int64, since time.Duration) []string {
		s.r.judgeArchive(s.at.Add(time.Minute), entries, since, behindFor)
		return s.minute()
	}
	s.same(minute(10, time.Minute))
	s.same(minute(1000, behindFor), "ops shop: news of the archive, which was behind or lost something | 1,000 entries have waited to be archived for 5m0s")
	s.same(minute(1000, time.Hour))
	s.same(minute(0, 0))
	s.same(minute(0, 0), "ops shop: news of the archive, which was behind or lost something | the archive has caught up")
	s.same(minute(0, 0))
}

// The number of subjects has a bound, and the message says that there may be more.
func TestRound_isBounded(t *testing.T) {
	t.Parallel()
	s := newStory(t, Target{Name: "ops", Failing: 1})
	for i := range mostSubjects + 10 {
		s.run(fmt.Sprintf("s%04d@1000", i), history.Failed, "")
	}
	got := s.minute()
	if len(got) != 1 || !strings.HasPrefix(got[0], "ops shop: at least 2,000 schedules or types fail again and again | s0000: a failure") {
		t.Errorf("%q", got)
	}
	if len(s.r.subjects) != mostSubjects {
		t.Errorf("%d are followed", len(s.r.subjects))
	}
}

// The notes in Redis at the end of a window are all that the next leader needs.
func TestRound_goesOnFromWhatWasNoted(t *testing.T) {
	t.Parallel()
	s := newStory(t, Target{Name: "ops", Failing: 3})
	s.run("a@1000", history.Failed, "x")
	s.run("b@1000", history.Failed, "x")
	noted := map[string]string{}
	s.at = s.at.Add(time.Minute)
	s.r.settle(s.at)
	maps.Copy(noted, s.r.change(s.at).Set)
	n := &Notifier{cfg: Config{Targets: []Target{Target{Name: "ops", Failing: 3}.withDefaults()}}}
	rounds, k := n.rounds(), &known{messages: map[string]string{}}
	for name, text := range noted {
		k.take(name, text, rounds, noted, s.at)
	}
	r := rounds[time.Minute]
	r.place, _ = parsePosition(noted[positionName(time.Minute)])
	if r.place.UpTo != s.at.UnixMilli() || r.place.Entry != s.r.place.Entry || len(r.subjects) != 2 || r.subjects[about{aSchedule, "a"}].Row != 1 {
		t.Errorf("%+v %v", r.place, r.subjects)
	}
}

// A schedule of any name is heard of, and a message is not.
func TestRound_hearsOfAScheduleThatIsNamedLikeAMessage(t *testing.T) {
	t.Parallel()
	s := newStory(t, Target{Name: "ops", Failing: 2})
	for range 2 {
		s.run("onbeat.notify:x@1700000000000", history.Dead, "boom")
		s.run("onbeat.notify:ops:dead:60000:1700000000000", history.Dead, "boom")
	}
	if got := s.minute(); len(got) != 1 || !strings.Contains(got[0], "onbeat.notify:x: 2 attempts in a row failed") {
		t.Errorf("%q", got)
	}
}

func TestScheduleOf(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"a/b@1700000000000": "a/b", "a+b@1700000000000+backfill": "a+b", "a!0123456789abcdefghij": "a", "user@example.com": "", "x!y": "", "mail": "",
	} {
		if got := queue.ScheduleOf(id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}

func TestNextPage_isAsSmallAsEntriesAreLarge(t *testing.T) {
	t.Parallel()
	page := firstPage
	for range 10 {
		page = nextPage(page, page) // entries of one run
	}
	if page != mostPage {
		t.Errorf("%d of small entries", page)
	}
	for range 10 {
		page = nextPage(page, 1000*page)
	}
	if page != 2 && page != 1 {
		t.Errorf("%d of large entries", page)
	}
}
