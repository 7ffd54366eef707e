package schedule

import (
	"cmp"
	"time"

	"github.com/onbeat/onbeat/internal/wording"
)

// StartAligned, as [Rule.Start], puts the slots of an every rule on multiples of its interval since 1970-01-01T00:00:00Z.
const StartAligned = "aligned"

// DefaultCatchUp applies if [Rule.CatchUp] is zero.
const DefaultCatchUp = time.Hour

// Rule says when something happens. Exactly one of Every and Cron must be set, so the zero Rule is invalid; every other
// zero field means its default. Make rules with [Every] and [Cron] or read them from JSON, and check them with
// [Rule.Validate].
type Rule struct {
	// Every is a fixed interval: 1 ms to 100 years, in whole milliseconds.
	Every time.Duration

	// Cron is an expression of five fields, or six with seconds first. The package documentation describes the syntax.
	Cron string

	// Timezone is the IANA name of the zone in which Cron is read, such as "Asia/Seoul". Default UTC. An every rule has
	// none, because its grid counts elapsed time.
	Timezone string

	// DST says what Cron does when the zone's clock changes. Default automatic.
	DST DST

	// Start says where slot zero lies. "" is the instant at which the rule is first applied, "aligned" (every only) is the
	// next multiple of Every since the Unix epoch, and an RFC 3339 time is that time. With Cron, a time means that no slot
	// lies before it.
	Start string

	// Until is the last instant at which a slot may lie, inclusive, up to 9999-12-30. Default: no end.
	Until time.Time

	// MaxRuns ends the schedule after that many runs. Default 0, no limit. A [Grid] ignores it, because only the scheduler
	// counts runs.
	MaxRuns int64

	// Jitter delays each slot's due time by an amount in [0, Jitter) that depends
	// only on the schedule's name and the slot; see [Rule.JitterFor]. At most Every,
	// so that due times keep the order of their slots. Default 0.
	Jitter time.Duration

	// Missed says what happens to slots that came while no instance could run them. Default "once".
	Missed Missed

	// CatchUp is how far back MissedAll reaches. Default 1h.
	CatchUp time.Duration

	// Overlap says what happens when the run before is still going. Default "allow".
	Overlap Overlap
}

// Every returns the rule with one slot each d, starting when it is first applied. [Rule.Validate] refuses an interval out
// of range.
func Every(d time.Duration) Rule { return Rule{Every: d} }

// Cron returns the rule of expr in the zone loc; nil is UTC. [Rule.Validate] refuses an invalid expression, and a zone that
// other machines could not find by its name: time.Local, or a zone made by time.FixedZone.
func Cron(expr string, loc *time.Location) Rule {
	r := Rule{Cron: expr}
	if loc != nil && loc != time.UTC {
		r.Timezone = loc.String()
	}
	return r
}

// Validate refuses an invalid rule, with one joined *[task.FieldError] for each field. They match [task.ErrInvalid].
func (r Rule) Validate() error {
	_, err := r.compile()
	return err
}

// compiled holds the expression, zone and bounds of a valid rule; cal and zone only for cron.
type compiled struct {
	cal      calendar
	zone     *zone
	dst      DST
	start    int64 // unix ms
	hasStart bool
	until    int64 // unix ms
}

func (r Rule) compile() (compiled, error) {
	var c compiled
	err := wording.Join(r.compileWhen(&c), r.compileBounds(&c), r.checkPolicies())
	return c, err
}

func (r Rule) compileWhen(c *compiled) error {
	switch {
	case r.Every == 0 && r.Cron == "":
		return invalid("every", "", "neither every nor cron is set", `say when: every: 1m, or cron: "*/5 * * * *"`)
	case r.Every != 0 && r.Cron != "":
		return invalid("every", FormatDuration(r.Every), "every and cron are both set", "remove one of them")
	case r.Every != 0:
		return wording.Join(checkDuration("every", r.Every, 1), r.checkElapsed())
	}
	var cron, zone error
	c.cal, cron = parseCron(r.Cron)
	c.zone, zone = loadZone(r.Timezone)
	err := wording.Join(cron, zone, oneOf("dst gap", r.DST.Gap, DSTGapSkip, DSTGapAfter),
		oneOf("dst overlap", r.DST.Overlap, DSTOverlapFirst, DSTOverlapSecond, DSTOverlapBoth))
	if err == nil {
		c.dst = r.DST.resolve(&c.cal)
	}
	return err
}

// checkElapsed refuses, in an every rule, the fields of a rule that follows a clock on the wall.
func (r Rule) checkElapsed() error {
	var list []error
	if r.Timezone != "" {
		list = append(list, invalid("timezone", r.Timezone, "an every rule has no timezone", "remove it, or use cron"))
	}
	if r.DST != (DST{}) {
		list = append(list, invalid("dst", "", "applies only to a cron rule", "remove it, or use cron"))
	}
	return wording.Join(list...)
}

func (r Rule) compileBounds(c *compiled) error {
	start, until := r.compileStart(c), r.compileUntil(c)
	if start == nil && until == nil && c.hasStart && c.until < c.start {
		return invalid("until", r.Until.UTC().Format(time.RFC3339Nano), "is before the start", "give a later time")
	}
	return wording.Join(start, until)
}

func (r Rule) compileStart(c *compiled) error {
	switch {
	case r.Start == "":
	case r.Start == StartAligned && r.Every == 0:
		return invalid("start", r.Start, "a cron rule is always aligned", "remove it, or give a time")
	case r.Start == StartAligned:
		c.hasStart = true // and start is the epoch
	default:
		t, err := time.Parse(time.RFC3339, r.Start)
		if err != nil {
			return invalid("start", r.Start, "not a start time", `use "aligned" or an RFC 3339 time such as 2030-01-31T09:00:00Z`)
		}
		if err := checkInstant("start", t); err != nil {
			return err
		}
		c.start, c.hasStart = t.UnixMilli(), true
	}
	return nil
}

func (r Rule) compileUntil(c *compiled) error {
	c.until = maxMilli
	if r.Until.IsZero() {
		return nil
	}
	// Slots lie on whole milliseconds, so rounding down loses none.
	until := r.Until.Truncate(time.Millisecond)
	if err := checkInstant("until", until); err != nil {
		return err
	}
	c.until = until.UnixMilli()
	return nil
}

func (r Rule) checkPolicies() error {
	var runs error
	if r.MaxRuns < 0 {
		runs = invalid("max_runs", formatInt(r.MaxRuns), "negative", "use 0 for no limit")
	}
	return wording.Join(runs, r.checkJitter(), checkDuration("catch_up", r.CatchUp, 0),
		oneOf("missed", r.Missed, MissedOnce, MissedAll, MissedSkip),
		oneOf("overlap", r.Overlap, OverlapAllow, OverlapSkip, OverlapQueue, OverlapReplace))
}

func (r Rule) checkJitter() error {
	err := checkDuration("jitter", r.Jitter, 0)
	if err == nil && r.Every > 0 && r.Jitter > r.Every {
		return invalid("jitter", FormatDuration(r.Jitter), "longer than the interval of "+FormatDuration(r.Every),
			"a later slot would come due before an earlier one; use at most the interval")
	}
	return err
}

// checkInstant refuses a time at which no slot can lie: it must be from 1970 to 9999-12-30, in whole milliseconds.
func checkInstant(field string, t time.Time) error {
	if sec := t.Unix(); sec < 0 || sec > maxMilli/1000 {
		return invalid(field, t.UTC().Format(time.RFC3339), "out of range", "use a time from 1970 to 9999-12-30")
	}
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		return invalid(field, t.UTC().Format(time.RFC3339Nano), "finer than a millisecond", "use whole milliseconds")
	}
	return nil
}

// WithDefaults returns r with the defaults of Missed, CatchUp and Overlap filled in. DST stays automatic, because its
// meaning depends on the expression.
func (r Rule) WithDefaults() Rule {
	r.Missed = cmp.Or(r.Missed, MissedOnce)
	r.CatchUp = cmp.Or(r.CatchUp, DefaultCatchUp)
	r.Overlap = cmp.Or(r.Overlap, OverlapAllow)
	return r
}

// Equal reports whether r and o are the same in every field, with defaults filled in. Two ways to write one cron expression
// are not equal.
func (r Rule) Equal(o Rule) bool { return r.Until.Equal(o.Until) && r.comparable() == o.comparable() }

// comparable returns r without the differences that mean nothing, so that == can compare rules.
func (r Rule) comparable() Rule {
	r = r.WithDefaults()
	r.Until = time.Time{}
	if r.Timezone == "UTC" {
		r.Timezone = ""
	}
	return r
}

// Location returns the zone of a cron rule, in which to print its slots; UTC for an every rule and for an invalid one.
func (r Rule) Location() *time.Location {
	z, err := loadZone(r.Timezone)
	if err != nil {
		return time.UTC
	}
	return z.loc
}

// FirstAnchor returns the anchor of a rule that is first applied at now, rounded down to the millisecond. For every, that
// is slot zero: now itself, the first multiple of the interval that is not before now, or the start time, which may lie in
// the past. For cron, it is now, or a start time after now: the grid has no slot before it. Keep the result, because
// applying the rule again must not move the anchor.
//
// FirstAnchor returns the zero Time if r is invalid.
func (r Rule) FirstAnchor(now time.Time) time.Time {
	c, err := r.compile()
	if err != nil {
		return time.Time{}
	}
	ms := floorMilli(now)
	switch {
	case !c.hasStart:
	case r.Cron != "":
		ms = max(ms, c.start)
	case r.Start == StartAligned:
		every := r.Every.Milliseconds()
		ms = -floorDiv(-ms, every) * every
	default:
		ms = c.start
	}
	return time.UnixMilli(ms).UTC()
}
