package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/store"
)

type doctorCmd struct {
	Strict bool `help:"Exit with 1 for warnings too."`
}

// Help is shown by onbeat doctor --help.
func (c *doctorCmd) Help() string {
	return "Shows each check with its state, ok, warn or fail, and what helps. Exits with 1 if a check fails.\n\n" +
		"Without a namespace it checks Redis alone."
}

// The states of a check.
const (
	checkOK   = "ok"
	checkWarn = "warn"
	checkFail = "fail"
)

// check is one thing the doctor looked at.
type check struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// doctor looks at a namespace and the Redis it is on.
type doctor struct {
	*client
	node   *redis.Client // the one that holds the namespace
	info   map[string]string
	checks []check
	bare   bool // no namespace is named: only Redis is checked
	moving bool // the slot of the namespace is on its way to another node of the cluster
	full   bool // Redis refuses writes for want of memory

	inPause bool // no instance may begin a task now
}

// bareNamespace stands where no namespace is named. Nothing is written to it.
const bareNamespace = "onbeat-doctor"

// Run checks and says what it found.
func (c *doctorCmd) Run(ctx context.Context, a *app) error {
	t, err := a.target()
	bare := errors.Is(err, errNoNamespace)
	if bare {
		t.cfg.Namespace = bareNamespace
	} else if err != nil {
		return err
	}
	cl, err := t.open()
	if err != nil {
		return err
	}
	defer cl.Close()
	d := &doctor{client: cl, bare: bare}
	d.cautions()
	switch err := cl.ping(ctx); {
	case store.LacksRight(err):
		return d.denied(ctx, a, err)
	case err != nil && !isOfDisk(err): // Redis refuses even PING while it cannot save
		return err
	}
	if d.server(ctx); d.node == nil {
		return cmp.Or(d.report(a), errSaid)
	}
	for _, look := range d.looks() {
		d.look(ctx, look)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.report(a); err != nil {
		return err
	}
	if d.has(checkFail) || c.Strict && d.has(checkWarn) {
		return errSaid
	}
	return nil
}

// looks are the checks, in the order in which they are made.
func (d *doctor) looks() []func(context.Context) {
	list := []func(context.Context){d.role, d.cluster, d.failover, d.writes, d.persistence, d.memory, d.scripts}
	if d.bare {
		return append(list, d.latency, d.clock)
	}
	return append(list, d.rights, d.latency, d.clock,
		d.namespaceOverview, d.paused, d.keysOverCaps, d.damage, d.unhandled, d.lateness, d.dead)
}

// has reports whether a check has a state.
func (d *doctor) has(state string) bool {
	return slices.ContainsFunc(d.checks, func(c check) bool { return c.State == state })
}

// movingTime is how long each look may take while the slot of the namespace is on its way: what Redis refuses then is asked
// for again and again.
const movingTime = 2 * time.Second

func (d *doctor) look(ctx context.Context, at func(context.Context)) {
	if d.moving {
		short, done := context.WithTimeout(ctx, movingTime)
		defer done()
		ctx = short
	}
	at(ctx)
}

// denied says which right is missing where, without it, nothing else can be looked at.
func (d *doctor) denied(ctx context.Context, a *app, cause error) error {
	if d.bare {
		return cause // rights are those in a namespace
	}
	d.rights(ctx)
	if d.checks[len(d.checks)-1].State == checkOK {
		return cause // of a right that no part of onbeat needs by itself
	}
	return cmp.Or(d.report(a), errSaid)
}

// cure is what helps against err: missing where it is the user who may not, and nothing where it is not known.
func (d *doctor) cure(err error, missing string) string {
	if err = store.Classify(err); store.LacksRight(err) {
		return missing
	}
	return hintOf(err)
}

// cautions reports how safe the way to Redis is.
func (d *doctor) cautions() {
	for _, c := range d.client.cautions {
		d.warn(c.Check, c.Hint, "%s", c.Text)
	}
}

func (d *doctor) ok(name, format string, args ...any) { d.note(name, checkOK, "", format, args...) }

func (d *doctor) warn(name, hint, format string, args ...any) {
	d.note(name, checkWarn, hint, format, args...)
}

func (d *doctor) fail(name, hint, format string, args ...any) {
	d.note(name, checkFail, hint, format, args...)
}

func (d *doctor) note(name, state, hint, format string, args ...any) {
	d.checks = append(d.checks, check{name, state, withoutPasswords(wording.OneLine(fmt.Sprintf(format, args...))), hint})
}

func (d *doctor) report(a *app) error {
	namespace := d.client.cfg.Namespace
	if d.bare {
		namespace = ""
	}
	if a.JSON {
		return a.printJSON(struct {
			Redis     string  `json:"redis"`
			Namespace string  `json:"namespace"` // "": only Redis was checked
			Checks    []check `json:"checks"`
		}{d.url, namespace, d.checks})
	}
	if d.bare {
		a.printf("%s (Redis alone: pass --namespace to check a namespace too)\n", d.url)
	} else {
		a.printf("%s on %s\n", a.style.bold(namespace), d.url)
	}
	paint := map[string]func(string) string{checkOK: a.style.green, checkWarn: a.style.yellow, checkFail: a.style.red}
	t := a.table("CHECK", "STATE", "FOUND")
	for _, c := range d.checks {
		t.add(c.Name, cell{c.State, paint[c.State]}, c.Detail)
		if c.Hint != "" {
			t.add("", "", cell{"→ " + c.Hint, a.style.dim})
		}
	}
	t.print(a.out)
	return nil
}
