package main

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/doctor"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

type doctorCmd struct {
	Strict bool `help:"Exit with 1 for warnings too."`
}

// Help is shown by onbeat doctor --help.
func (c *doctorCmd) Help() string {
	return "Shows each check with its state, ok, warn or fail, and what to do about it. Exits with 1 if a check fails.\n\n" +
		"Says whether all is set up well; \"onbeat status\" says whether all is well now, \"onbeat audit\" what became of each slot.\n\n" +
		"Without a namespace it checks Redis alone."
}

// Run runs the checks and shows their results.
func (c *doctorCmd) Run(ctx context.Context, a *app) error {
	t, err := a.redisTarget()
	if err != nil && !errors.Is(err, errNoNamespace) {
		return err
	}
	rdb, err := t.dial()
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()
	var kept []*archive.Source
	uncounted := false
	if t.cfg.Namespace != "" {
		err := t.split(ctx, rdb)
		uncounted = store.LacksRight(err) && t.cfg.Partitions == 0
		switch {
		case err == nil, errors.Is(err, task.ErrDenied), errors.Is(err, store.ErrWrongType): // the checks name what is lacking or damaged
		case errors.Is(err, task.ErrUnreachable) && t.ping(ctx, rdb) == nil:
			return err // the node that has the number of partitions is away, and others are not
		case !store.Retryable(err): // else the checks say what is wrong with Redis
			return err
		}
	}
	for i := range max(t.cfg.Partitions, 1) {
		if t.cfg.Archive == nil {
			break
		}
		name := queue.Partition{Namespace: t.cfg.Namespace}
		if t.cfg.Partitions > 1 {
			name.Number = i + 1
		}
		source, err := archive.NewSource(t.cfg.Archive, name.String(), zerolog.Nop())
		if err != nil {
			return err
		}
		defer func() { _ = source.Close() }()
		kept = append(kept, source)
	}
	report, err := doctor.Examine(ctx, doctor.Config{
		Redis: rdb, URL: t.url, Namespace: t.cfg.Namespace, Partitions: t.cfg.Partitions, Uncounted: uncounted, Ping: func(ctx context.Context) error { return t.ping(ctx, rdb) },
		Cautions: t.cautions(), Durability: t.cfg.Durability, Caps: t.cfg.Caps, Lease: t.cfg.Lease,
		Encryption: t.cfg.Encryption, Archives: kept, Outbox: t.cfg.Outbox,
	})
	if err != nil {
		return err
	}
	if err := a.showChecks(&report); err != nil {
		return err
	}
	if report.Has(doctor.Fail) || c.Strict && report.Has(doctor.Warn) {
		return errSaid
	}
	return nil
}

func (a *app) showChecks(r *doctor.Report) error {
	if a.JSON {
		return a.printJSON(r)
	}
	if r.Namespace == "" {
		a.printf("%s (only Redis: pass --namespace to check a namespace too)\n", r.Redis)
	} else {
		a.printf("%s on %s\n", a.style.bold(r.Namespace), r.Redis)
	}
	paint := map[string]func(string) string{doctor.OK: a.style.green, doctor.Warn: a.style.yellow, doctor.Fail: a.style.red}
	t := a.table("CHECK", "STATE", "FOUND")
	for _, c := range r.Checks {
		t.add(c.Name, cell{c.State, paint[c.State]}, c.Detail)
		if c.Hint != "" {
			t.add("", "", cell{"→ " + c.Hint, a.style.dim})
		}
	}
	t.print(a.out)
	return nil
}
