package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

type schedulesRevisionsCmd struct {
	Name  string `arg:"" predict:"schedule" help:"Schedule, also one that was deleted or retired within 30 days."`
	Limit int    `default:"20" placeholder:"N" help:"List at most this many (default ${default}); 50 are kept."`
	After string `placeholder:"CURSOR" help:"Continue after this cursor, printed at the end of the page before."`

	Reveal bool `help:"Show the secret values of payloads too."`
}

// Run lists the revisions of a schedule.
func (c *schedulesRevisionsCmd) Run(ctx context.Context, a *app) error {
	if c.Limit < 1 || c.Limit > mostListed {
		return refuse("limit", fmt.Sprint(c.Limit), "out of range", fmt.Sprintf("1 to %d", mostListed))
	}
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	list, err := cl.Schedules.Revisions(ctx, c.Name, c.Limit, c.After)
	if err != nil {
		return cl.notFound(ctx, c.Name, err)
	}
	if !c.Reveal {
		list = admin.MaskedList(list)
	}
	if a.JSON {
		return a.printJSON(list)
	}
	now, err := cl.Activity.Now(ctx)
	if err != nil {
		return err
	}
	for i := range list.Items {
		a.printRevision(&list.Items[i], now)
	}
	if list.Next != "" {
		a.printf("\n%s", a.style.dim("more: --after "+list.Next))
	}
	return nil
}

func (a *app) printRevision(r *admin.Revision, now time.Time) {
	text := a.style.bold(fmt.Sprint(r.Revision)) + " " + r.What
	if by := cmp.Or(r.By, r.Release); by != "" { // the release has declared the schedule, and did not ask for what a person did
		text += " by " + by
	}
	a.printf("%s %s", text, wording.Ago(r.At, now))
	if r.Encrypted != "" {
		a.printf("  payload: %s", r.Encrypted)
	}
	for _, c := range r.Changes {
		a.printf("  %s: %s → %s", c.Field, orNotSet(c.From), orNotSet(c.To))
	}
}

type schedulesRevertCmd struct {
	Name     string `arg:"" predict:"schedule" help:"Schedule."`
	Revision int64  `arg:"" help:"Number of the revision; see onbeat schedules revisions."`
}

// Run makes a schedule say what it said before.
func (c *schedulesRevertCmd) Run(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	return a.each([]string{c.Name}, func(name string) (string, error) {
		did, err := cl.Schedules.Revert(ctx, name, c.Revision)
		if bad := field.Of(err); bad != nil && bad.Field == "revision" {
			return "", &failure{err, "onbeat schedules revisions " + name + " lists them"}
		} else if err != nil {
			return "", cl.notFound(ctx, name, err)
		}
		if did.Declared {
			a.noteDeclared(name, did.DeclaredBy, "Change %s too.")
		}
		return did2word(did.Result == "unchanged", "unchanged", "reverted"), nil
	})
}

type schedulesRestoreCmd struct {
	Names []string `arg:"" name:"name" help:"Schedules; see onbeat schedules list --deleted."`
}

// Help says what becomes of the time in between.
func (*schedulesRestoreCmd) Help() string {
	return "The schedules go on as they were: on their grid, with their runs counted, and paused if they were. The slots since then " +
		"are noted as deleted, and none of them runs. Once another schedule has been made under a name, the deleted one is gone."
}

// Run lets deleted schedules go on.
func (c *schedulesRestoreCmd) Run(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	return a.each(c.Names, func(name string) (string, error) {
		_, err := cl.Schedules.Restore(ctx, name)
		if errors.Is(err, task.ErrNotFound) {
			err = &failure{err, "see onbeat schedules list --deleted"}
		}
		return "restored", err
	})
}

// listGone lists the schedules that can be restored, or those that were retired.
func (c *schedulesListCmd) listGone(ctx context.Context, a *app, cl *client) error {
	word, from := "deleted", cl.Schedules.Deleted
	if c.Retired {
		word, from = "retired", cl.Schedules.Retired
	}
	list, unread := from(ctx)
	if len(list.Items) == 0 && unread != nil {
		return unread
	}
	unread = errors.Join(unread, lacking(list.CouldNotAsk))
	if !c.Reveal {
		list = admin.MaskedList(list)
	}
	if a.JSON {
		return errors.Join(a.printJSON(list), unread)
	}
	if len(list.Items) == 0 && len(list.CouldNotAsk) == 0 {
		a.printf("no %s schedules in %s", word, cl.namespace)
		return unread
	}
	now, err := cl.Activity.Now(ctx)
	if err != nil {
		return err
	}
	t := a.table("NAME", "WHEN", "TASK", strings.ToUpper(word), "BY", "STATE")
	for i := range list.Items {
		s := &list.Items[i]
		at, by := s.Since, ""
		switch {
		case s.Retired != nil:
			by = s.Retired.Release
		case s.Deleted != nil:
			by = s.Deleted.By
		}
		t.add(cell{s.Name, a.style.bold}, shortWhen(s.Rule), s.Task, wording.Ago(at, now), dash(by), scheduleState(s))
	}
	t.print(a.out)
	return unread
}
