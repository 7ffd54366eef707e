package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

type schedulesCmd struct {
	List      schedulesListCmd      `cmd:"" help:"List the schedules."`
	Show      schedulesShowCmd      `cmd:"" help:"Show a schedule and its next slots."`
	Runs      schedulesRunsCmd      `cmd:"" help:"List the outcomes of a schedule's slots, the newest first."`
	Revisions schedulesRevisionsCmd `cmd:"" help:"List the revisions of a schedule, the newest first."`
	Apply     schedulesApplyCmd     `cmd:"" help:"Make or change the schedules of a file."`
	Revert    schedulesRevertCmd    `cmd:"" help:"Set a schedule back to a revision."`
	Pause     schedulesPauseCmd     `cmd:"" help:"Stop schedules: no later slot runs."`
	Resume    schedulesResumeCmd    `cmd:"" help:"Resume paused schedules on their old grid."`
	Trigger   schedulesTriggerCmd   `cmd:"" help:"Run a schedule's task once, now, outside its grid."`
	Backfill  schedulesBackfillCmd  `cmd:"" help:"Run the task of every slot in a range of time, oldest first, also of slots that have run and of slots before the schedule began."`
	Delete    schedulesDeleteCmd    `cmd:"" help:"Delete schedules. They can be restored for 30 days."`
	Restore   schedulesRestoreCmd   `cmd:"" help:"Restore deleted schedules on their old grid."`
}

// notFound adds to the error of an unknown schedule the name that the user may have meant.
func (c *client) notFound(ctx context.Context, name string, err error) error {
	if !errors.Is(err, task.ErrNotFound) {
		return err
	}
	var names []string
	list, _ := c.Schedules.List(ctx)
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	if s, err := c.Schedules.Get(ctx, name); err == nil && s.Retired != nil {
		return &failure{fmt.Errorf("schedule %q: %w", name, task.ErrNotFound), "it is " + scheduleState(&s.Schedule) + "; onbeat schedules show has what it was"}
	}
	if deleted, _ := c.Schedules.Deleted(ctx); slices.ContainsFunc(deleted.Items, func(s admin.Schedule) bool { return s.Name == name }) {
		return &failure{fmt.Errorf("schedule %q: %w", name, task.ErrNotFound), "it was deleted; onbeat schedules restore lets it go on"}
	}
	hint := "see onbeat schedules list"
	if best := wording.Nearest(name, names); best != "" {
		hint = "did you mean " + best + "?"
	}
	return &failure{fmt.Errorf("schedule %q: not found", name), hint}
}

type schedulesPauseCmd struct {
	scheduleFilter
	Reason string `placeholder:"TEXT" help:"Why, in up to 200 characters: status, audit and schedules show and list say it."`
}

// Help says what the reason is for.
func (*schedulesPauseCmd) Help() string {
	return "Of a schedule that is paused, only the reason changes, if one is given. onbeat audit is not well while a schedule has been " +
		"paused for the whole time without a reason."
}

// Run pauses schedules.
func (c *schedulesPauseCmd) Run(ctx context.Context, a *app) error {
	return c.each(ctx, a, "paused", func(cl *client, name string) (string, error) {
		did, err := cl.Schedules.Pause(ctx, name, c.Reason)
		return did2word(did, "paused", "already paused"), err
	})
}

type schedulesResumeCmd struct{ scheduleFilter }

// Run resumes schedules.
func (c *schedulesResumeCmd) Run(ctx context.Context, a *app) error {
	return c.each(ctx, a, "resumed", func(cl *client, name string) (string, error) {
		did, err := cl.Schedules.Resume(ctx, name)
		return did2word(did, "resumed", "not paused"), err
	})
}

type schedulesDeleteCmd struct{ scheduleFilter }

// Run deletes schedules.
func (c *schedulesDeleteCmd) Run(ctx context.Context, a *app) error {
	return c.each(ctx, a, "deleted", func(cl *client, name string) (string, error) {
		was, err := cl.Schedules.Delete(ctx, name)
		if err == nil && was.Origin == producer.Declared {
			a.noteDeclared(name, was.Release, "Take it out of %s too, or pause it.")
		}
		return "deleted", err
	})
}

// noteDeclared notes on stderr that a change of a schedule does not last, because a release declares the schedule.
func (a *app) noteDeclared(name, release, instead string) {
	whose, config := "A release", "its config"
	if release != "" {
		whose, config = "Release "+release, "the config of "+release
	}
	fmt.Fprintf(a.err, "onbeat: note: %s also declares %s. Its leader will undo this change at the next restart, rollout or SIGHUP. %s\n",
		oneCell(whose), oneCell(name), fmt.Sprintf(instead, oneCell(config)))
}

func did2word(did bool, yes, no string) string {
	if did {
		return yes
	}
	return no
}

// each calls do for each name, and prints the results. After an error of one name alone, each goes on with the others. It returns the
// last such error, and has printed the ones before.
func (a *app) each(names []string, do func(string) (string, error)) error {
	results := []admin.Result{}
	var failed error
	for _, name := range names {
		word, err := do(name)
		if err != nil {
			if failed != nil {
				fmt.Fprintln(a.err, "onbeat:", said(failed))
			}
			if failed = err; !ofOneName(err) {
				break
			}
			continue
		}
		results = append(results, admin.Result{Name: name, Result: word})
		if !a.JSON {
			a.printf("%s %s", a.wordStyle(word), name)
		}
	}
	if a.JSON {
		if err := a.printJSON(results); err != nil {
			return err
		}
	}
	return failed
}

// ofOneName reports whether an error is about one schedule or task alone, and not about Redis.
func ofOneName(err error) bool {
	var failed *failure
	return errors.Is(err, task.ErrNotFound) || errors.Is(err, task.ErrInvalid) || errors.As(err, new(*admin.StateError)) ||
		errors.As(err, &failed) && !store.Retryable(failed.err) && !errors.Is(failed.err, task.ErrDenied)
}

// wordStyle colours a word that says whether anything changed.
func (a *app) wordStyle(word string) string {
	if strings.HasPrefix(word, "already") || strings.HasPrefix(word, "not ") || word == "unchanged" {
		return a.style.dim(word)
	}
	return a.style.green(word)
}
