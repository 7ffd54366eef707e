package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// examineParts runs all checks of each partition, with the node that holds it, side by side.
func examineParts(ctx context.Context, cfg Config) (Report, error) {
	reports, errs := make([]Report, cfg.Partitions), make([]error, cfg.Partitions)
	soon, done := context.WithTimeout(ctx, nodeTime)
	limited, unasked := queue.Limited(soon, cfg.Redis, cfg.Namespace)
	n, denied := queue.Partitions(soon, cfg.Redis, cfg.Namespace)
	if denied == nil && n == cfg.Partitions { // as an instance does when it starts: it changes nothing
		_, denied = queue.Split(soon, cfg.Redis, cfg.Namespace, n)
	}
	done()
	var all sync.WaitGroup
	for i := range reports {
		all.Go(func() { reports[i], errs[i] = examine(ctx, cfg, i+1, limited...) })
	}
	all.Wait()
	if !slices.Contains(errs, nil) {
		return Report{}, errs[0]
	}
	for i, err := range errs {
		if err != nil {
			reports[i].Checks = []Check{{Name: "server", State: Fail, Detail: secret.Text(err.Error())}}
		}
	}
	checks := joined(reports)
	switch {
	case errors.Is(denied, task.ErrDenied):
		checks = slices.DeleteFunc(checks, func(c Check) bool { return c.Name == "rights" && c.State == OK })
		meta := "~" + queue.Partition{Namespace: cfg.Namespace}.Keys().Meta
		checks = append(checks, Check{
			Name: "rights", State: Fail, Detail: "this user lacks " + meta + ", which has the number of partitions", Hint: "ACL SETUSER … " + meta + " (" + admin.RightsPage + ")",
		})
	case unasked != nil:
		checks = append(checks, Check{Name: "limits", State: Fail, Detail: secret.Text(unasked.Error()), Hint: "bring back the node that has the types with a limit"})
	}
	return Report{Redis: secret.URL(cfg.URL), Namespace: cfg.Namespace, Checks: checks}, ctx.Err()
}

// limits looks for schedules that lie apart from the other tasks of their type: they were there before the type had a limit, and their
// tasks are counted by themselves.
func (d *doctor) limits(ctx context.Context) {
	if len(d.limited) == 0 {
		return
	}
	list, err := d.schedules.List(ctx)
	if err != nil {
		d.warn("limits", "", "could not read all schedules: %v", err)
	}
	m := split.Map{Partitions: d.cfg.Partitions}
	var apart []string
	for i := range list {
		if s := &list[i].Schedule; slices.Contains(d.limited, s.Task) && m.Of(s.Task) != d.number {
			apart = append(apart, fmt.Sprintf("%s (%s)", s.Name, s.Task))
		}
	}
	if len(apart) == 0 {
		d.ok("limits", "no schedule lies apart from the other tasks of its type")
		return
	}
	d.warn("limits", "their tasks are counted by themselves, so more may run at once: give each a type of its own, or another name",
		"%s that were there before their type had a limit lie apart: %s", wording.Count(int64(len(apart)), "schedule", "schedules"), some(apart))
}

// joined makes one list of the checks of partitions. A check that is ok in all of them has one line; each other finding has one, which
// says where it was found, if that is not everywhere.
func joined(reports []Report) (list []Check) {
	var names []string
	for _, r := range reports {
		for _, c := range r.Checks {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	for _, name := range names {
		var found []Check
		at := map[Check][]string{}
		for i, r := range reports {
			for _, c := range r.Checks {
				if c.Name != name {
					continue
				}
				if at[c] == nil {
					found = append(found, c)
				}
				at[c] = append(at[c], fmt.Sprint(i+1))
			}
		}
		if bad := slices.DeleteFunc(slices.Clone(found), func(c Check) bool { return c.State == OK }); len(bad) > 0 {
			found = bad
		} else if len(found) > 1 {
			found = []Check{{Name: name, State: OK, Detail: fmt.Sprintf("ok in each of %d partitions", len(reports))}}
			if n := have(reports, name); n < len(reports) {
				found[0].Detail = fmt.Sprintf("ok in %d of %d partitions: the others could not be examined", n, len(reports))
			}
		}
		for _, c := range found {
			if where := at[c]; len(where) > 0 && len(where) < len(reports) {
				c.Detail = "partition " + strings.Join(where, ", ") + ": " + c.Detail
			}
			list = append(list, c)
		}
	}
	return list
}

// have returns how many partitions have a check.
func have(reports []Report, name string) (n int) {
	for _, r := range reports {
		if slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Name == name }) {
			n++
		}
	}
	return n
}
