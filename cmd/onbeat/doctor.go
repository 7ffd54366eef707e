package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/store"
)

type doctorCmd struct{}

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
	moving bool // the slot of the namespace is on its way to another node of the cluster

	inPause bool // nobody may begin a task now
}

// Run checks and says what it found.
func (c *doctorCmd) Run(ctx context.Context, a *app) error {
	cl, err := a.connect(ctx)
	if store.LacksRight(err) {
		return c.denied(ctx, a, err)
	}
	if err != nil {
		return err
	}
	defer cl.Close()
	d := &doctor{client: cl}
	d.cautions()
	if d.server(ctx); d.node == nil {
		return cmp.Or(d.report(a), errSaid)
	}
	for _, look := range []func(context.Context){
		d.role, d.cluster, d.failover, d.writes, d.persistence, d.memory, d.scripts, d.rights, d.latency, d.clock,
		d.namespaceOverview, d.paused, d.keysOverCaps, d.damage, d.unhandled, d.lateness, d.dead,
	} {
		d.look(ctx, look)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.report(a); err != nil {
		return err
	}
	for _, c := range d.checks {
		if c.State == checkFail {
			return errSaid
		}
	}
	return nil
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

// denied says which right is missing where, for want of it, nothing else can be looked at.
func (c *doctorCmd) denied(ctx context.Context, a *app, cause error) error {
	t, err := a.target()
	if err != nil {
		return err
	}
	cl, err := t.open()
	if err != nil {
		return err
	}
	defer cl.Close()
	d := &doctor{client: cl}
	d.cautions()
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
	if a.JSON {
		return a.printJSON(struct {
			Redis     string  `json:"redis"`
			Namespace string  `json:"namespace"`
			Checks    []check `json:"checks"`
		}{d.url, d.client.cfg.Namespace, d.checks})
	}
	a.printf("%s on %s\n", a.style.bold(d.client.cfg.Namespace), d.url)
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
