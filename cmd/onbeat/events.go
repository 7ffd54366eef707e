package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
)

type eventsCmd struct {
	Follow bool   `short:"f" help:"Keep running, and show new events as they happen."`
	Since  string `placeholder:"T" help:"Only events since this time: RFC 3339, a date, or how long ago."`
	Limit  int    `default:"50" placeholder:"N" help:"How many past events to show at most, the newest. Default 50."`
}

// Run shows events.
func (c *eventsCmd) Run(ctx context.Context, a *app) error {
	since, err := parseMoment("since", c.Since, time.Now())
	if err != nil {
		return err
	}
	if c.Limit < 1 || c.Limit > 10_000 {
		return refuse("limit", fmt.Sprint(c.Limit), "out of range", "1 to 10000")
	}
	cl, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer cl.Close()
	now, err := cl.Activity.Now(ctx)
	if err != nil {
		return err
	}
	list, err := cl.Activity.Events(ctx, admin.EventQuery{Since: since, Limit: c.Limit})
	if err != nil {
		return err
	}
	if a.JSON && !c.Follow {
		return errors.Join(a.printJSON(list), lacking(list.CouldNotAsk))
	}
	last := fmt.Sprint(now.UnixMilli() - 1) // without any event so far, follow must not miss those that came since the read
	for i := range list.Items {
		last = cmp.Or(list.Items[i].Cursor, list.Items[i].ID)
		if err := a.printEvent(&list.Items[i]); err != nil {
			return err
		}
	}
	if !c.Follow {
		return lacking(list.CouldNotAsk)
	}
	ctx, stop := a.whileRead(ctx)
	defer stop()
	return a.follow(ctx, cl, last)
}

// follow prints events until ctx ends or a write fails. It waits while Redis is away.
func (a *app) follow(ctx context.Context, cl *client, last string) error {
	away := false
	for {
		err := cl.Activity.Follow(ctx, last, func(e admin.Event) error {
			last, away = e.Cursor, false
			return a.printEvent(&e)
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !store.Retryable(err):
			return err
		case err != nil && !away:
			away = true
			fmt.Fprintln(a.err, "onbeat:", said(err)+" (trying again)")
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *app) printEvent(e *admin.Event) error {
	if a.JSON {
		return a.printLine(e)
	}
	var more []string
	for _, k := range slices.Sorted(maps.Keys(e.Fields)) {
		if v := e.Fields[k]; v != "" {
			more = append(more, a.style.dim(oneCell(k)+"=")+oneCell(wording.Field(k, v)))
		}
	}
	if _, partition, ok := strings.Cut(e.ID, "@"); ok {
		more = append(more, a.style.dim("partition=")+oneCell(partition))
	}
	_, err := fmt.Fprintf(a.out, "%s  %s  %s\n", a.style.dim(e.At.Format("2006-01-02T15:04:05.000Z07:00")),
		a.style.bold(fmt.Sprintf("%-18s", oneCell(e.Event))), strings.Join(more, " "))
	return err
}
