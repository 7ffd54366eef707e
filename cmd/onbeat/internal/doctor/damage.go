package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/wording"
)

// damage looks for keys that another program has written, and for schedules with too many waiting slots.
func (d *doctor) damage(ctx context.Context) {
	const day = 24 * time.Hour
	strange, err := d.q.OfAnotherType(ctx)
	if err != nil {
		d.fail("damage", "", "%v", err)
		return
	}
	var stray []string
	if len(strange) == 0 {
		if stray, err = d.q.StrayLanes(ctx); err != nil {
			d.fail("damage", "", "%v", err)
			return
		}
	}
	for i, name := range stray {
		stray[i] = strconv.QuoteToASCII(wording.Cut(name, 60))
	}
	now, err := d.q.Now(ctx)
	if err != nil {
		d.fail("damage", "", "%v", err)
		return
	}
	events, err := d.q.Events(ctx, now.Add(-day), 10_000)
	if err != nil {
		d.fail("damage", "", "%v", err)
		return
	}
	var aside, full []string
	for _, e := range events {
		switch e.Kind {
		case "set aside":
			aside = append(aside, strings.TrimSpace(e.Fields["key"]+" "+e.Fields["task"]))
		case "recounted":
			aside = append(aside, "counts of running tasks")
		case "backlog":
			full = append(full, e.Fields["schedule"])
		}
	}
	const hint = "another program writes to onbeat's keys: give it a user without that right (docs/rights.md)"
	switch {
	case len(strange) > 0:
		d.fail("damage", hint, "keys of another type: %s", some(strange))
	case len(stray) > 0:
		d.fail("damage", "remove them from the hash lanes with HDEL; "+hint, "no lanes, so no instance looks for their tasks: %s", some(stray))
	case len(aside) > 0:
		d.warn("damage", hint, "set aside in the last day: %s", some(aside))
	default:
		d.ok("damage", "no key is of another type, and nothing was set aside in the last day")
	}
	if len(full) > 0 {
		d.warn("backlog", "run an instance that handles them, or pause them", "too many slots wait: in the last day new slots were skipped of %s", some(full))
	}
}

// some names a few of a list, each once.
func some(list []string) string {
	list = slices.Clone(list)
	slices.Sort(list)
	list = slices.Compact(list)
	if n := len(list); n > 5 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:5], ", "), n-5)
	}
	return strings.Join(list, ", ")
}
