package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

type auditCmd struct {
	Schedule  string `arg:"" optional:"" help:"The schedule to audit. Default: all, also those deleted lately."`
	Since     string `placeholder:"T" help:"Look back to this time: RFC 3339, a date, or how long ago. Default: to the last two slots of each schedule, at least 1h."`
	Tolerance string `default:"1s" placeholder:"D" help:"Longest lag of a slot that is on time (default ${default})."`
}

// Help is shown by onbeat audit --help.
func (c *auditCmd) Help() string {
	return "Says what became of each slot; \"onbeat status\" says whether all is well now, \"onbeat doctor\" whether all is set up well.\n\n" +
		"Gives every slot that was due one verdict from the history, in Redis and, where Redis no longer has it, in the archive if there is one: it ran on time or late; it was missed, skipped " +
		"or paused, by the schedule's own policy or by hand; it is pending or running; or a promise broke: it was lost, ran twice for no " +
		"reason, ran early, or ran off the grid. If Redis lost writes that it had acknowledged, the audit shows from when until " +
		"when at the latest, and how many slots may have run twice (!).\n\n" +
		"Exits with 1 if a schedule is not well, and says why: a promise broke; slots are overdue by more than 10 s; slots were missed; two " +
		"slots in a row were skipped behind a run, so that it lasted longer than the time between them; it was paused for the whole time, and nobody " +
		"said why (onbeat schedules pause --reason); or it is not well now, as onbeat status says it, for example because its last run failed for good. " +
		"Also exits with 1 if there is no schedule."
}

// Run is called when the command is given.
func (c *auditCmd) Run(ctx context.Context, a *app) error {
	var since time.Duration
	if c.Since != "" {
		now := time.Now()
		from, err := parseMoment("since", c.Since, now)
		if err != nil {
			return err
		}
		if !from.Before(now) {
			return refuse("since", c.Since, "not before now", "for example 90s, 1h30m, 7d or 2030-01-31")
		}
		since = now.Sub(from)
	}
	tolerance, err := schedule.ParseDuration(c.Tolerance)
	if err != nil || tolerance <= 0 {
		return refuse("tolerance", c.Tolerance, "not a duration above zero", "for example 500ms or 5s")
	}
	opts := audit.Options{Schedule: c.Schedule, Since: since, Tolerance: tolerance}
	client, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	verdict, err := client.Activity.Audit(ctx, opts)
	if err != nil && len(verdict.Schedules) == 0 {
		if errors.Is(err, task.ErrNotFound) {
			return &failure{err, "see onbeat schedules list"}
		}
		return err
	}
	if shown := a.showAudit(&verdict, opts); shown != nil {
		return shown
	}
	if err != nil { // some schedules could not be read
		return err
	}
	if !verdict.OK() {
		return errSaid
	}
	return nil
}

func (a *app) showAudit(verdict *admin.Audit, opts audit.Options) error {
	if a.JSON {
		return a.printJSON(verdict)
	}
	reports, losses := verdict.Schedules, verdict.LostWrites
	if len(reports) == 0 {
		a.printf("%s", a.style.red(fmt.Sprintf("✗ no schedules in the last %s: nothing to audit (is it the right namespace?)", schedule.FormatDuration(cmp.Or(opts.Since, time.Hour).Round(time.Second)))))
		a.showLosses(losses)
		return nil
	}
	t := a.table("SCHEDULE", "SLOTS", "ON TIME", "LATE", "MISSED", "SKIPPED", "PAUSED", "PENDING", "RUNNING", "FAILED", "LOST", "DUPLICATED", "OTHER", "LAG p99", "")
	for i := range reports {
		r := &reports[i]
		verdict := cell{"✓", a.style.green}
		switch {
		case !r.OK():
			verdict = cell{"✗", a.style.red}
		case r.Repeated > 0 || r.Counts[audit.Failed] > 0:
			verdict = cell{"!", a.style.yellow}
		}
		n := func(v audit.Verdict) string { return strconv.FormatInt(r.Counts[v], 10) }
		bad := func(v audit.Verdict) cell {
			if r.Counts[v] == 0 {
				return cell{text: "0"}
			}
			return cell{n(v), a.style.red}
		}
		t.add(r.Schedule, strconv.FormatInt(r.Slots, 10), n(audit.OnTime), n(audit.Late), n(audit.Missed), n(audit.Skipped),
			n(audit.Paused), n(audit.Pending), n(audit.Running), bad(audit.Failed), bad(audit.Lost), bad(audit.Duplicated), strconv.FormatInt(r.Other(), 10),
			lagText(r), verdict)
	}
	t.print(a.out)
	a.printf("%s", a.style.dim("✓ each slot ran once   ! runs failed or were repeated   ✗ slots missed, lost, doubled or off the grid"))
	for i := range reports {
		a.showAuditDetails(&reports[i])
	}
	a.showLosses(losses)
	for _, u := range verdict.CouldNotAsk {
		a.printf("\n%s", a.style.red("✗ could not ask "+oneCell(u.Source+": "+u.Error)))
	}
	return nil
}

// showLosses prints the times whose writes Redis lost. The verdicts cannot know what happened then.
func (a *app) showLosses(losses []audit.Loss) {
	for _, l := range losses {
		what := "Redis"
		if l.Partition > 0 {
			what += " (partition " + strconv.Itoa(l.Partition) + ")"
		}
		switch {
		case !l.From.IsZero():
		case l.Archived.IsZero():
			a.printf("\n%s", a.style.red("! "+what+" came back empty after "+l.Known.Format(slotLayout)+": the audit knows nothing of the time before"))
			continue
		default:
			a.printf("\n%s", a.style.red("! "+what+" came back empty after "+l.Known.Format(slotLayout)+": the archive has what was noted until "+
				l.Archived.Format(slotLayout)))
			continue
		}
		a.printf("\n%s", a.style.red("! "+what+" lost its writes from "+l.From.Format(slotLayout)+" until "+l.Until.Format(slotLayout)+
			" at the latest: what ran then may have run again"))
	}
}

// slotLayout shows a slot, which may be one of many in a second.
const slotLayout = "2006-01-02T15:04:05.000Z07:00"

func lagText(r *audit.Report) string {
	if r.Counts[audit.OnTime]+r.Counts[audit.Late]+r.Counts[audit.Failed] == 0 {
		return "-"
	}
	return r.P99.String()
}

// showAuditDetails prints what the table has no room for.
func (a *app) showAuditDetails(r *audit.Report) {
	var lines []string
	for _, why := range slices.Sorted(maps.Keys(r.Why)) {
		lines = append(lines, fmt.Sprintf("%d %s", r.Why[why], why))
	}
	for _, v := range []struct {
		verdict audit.Verdict
		text    string
	}{
		{audit.Failed, "failed for good: see onbeat tasks list --state dead"},
		{audit.Cancelled, "cancelled"},
		{audit.Changed, "did not run: the schedule was changed, made, retired or deleted"},
		{audit.Unknown, "are unknown: they are older than the history, were lost with it, or a newer release wrote them"},
	} {
		if n := r.Counts[v.verdict]; n > 0 {
			lines = append(lines, fmt.Sprintf("%d %s", n, v.text))
		}
	}
	for _, x := range r.Runs {
		lines = append(lines, fmt.Sprintf("the slot of %s runs since %s", x.Slot.Format(slotLayout), x.Since.Format(slotLayout)))
	}
	for _, x := range r.Trouble {
		lines = append(lines, a.style.red("✗ "+x.Kind+": "+oneCell(x.Text)))
	}
	if r.Repeated > 0 {
		lines = append(lines, a.style.yellow(fmt.Sprintf("! %d may have run twice: Redis lost its writes when they were due", r.Repeated)))
	}
	if r.Retried > 0 {
		lines = append(lines, fmt.Sprintf("%d took more than one run: %d runs failed, %d were lost with their instance, %d were handed back",
			r.Retried, r.FailedRuns, r.LostRuns, r.ReturnedRuns))
	}
	for _, b := range r.Breaks {
		lines = append(lines, a.style.red(fmt.Sprintf("✗ %s %s: %s", b.Slot.Format(slotLayout), b.Verdict, b.Detail)))
	}
	if more := r.BrokenSlots() - int64(len(r.Breaks)); more > 0 {
		lines = append(lines, a.style.red(fmt.Sprintf("✗ and %d more", more)))
	}
	if len(lines) == 0 {
		return
	}
	a.printf("\n%s", a.style.bold(r.Schedule))
	for _, line := range lines {
		a.printf("  %s", line)
	}
}
