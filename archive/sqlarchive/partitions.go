package sqlarchive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/onbeat/onbeat/archive"
)

// ahead is for how many days partitions are made before their rows come.
const ahead = 7

// days are the partitions of onbeat_runs that need not be made: they are there, or cannot be made.
type days struct {
	mu    sync.Mutex
	known map[int64]bool // days since 1970
	told  bool           // that they cannot be made
}

func dayOf(t time.Time) int64 { return t.Unix() / int64(day/time.Second) }

func (d *days) missing(n int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.known[n]
}

func (d *days) set(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = map[int64]bool{}
	}
	d.known[n] = true
}

// forget has all partitions looked up again.
func (d *days) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = nil
}

// prepare makes the partitions of the days on which runs began. A day that is far from the present gets none, because another
// program may have written any time into Redis.
func (p *postgres) prepare(ctx context.Context, ran []row) error {
	today := dayOf(time.Now())
	for _, r := range ran {
		n := dayOf(r.(*run).begun.Time)
		if n <= today+ahead && n >= today-int64((p.keep+longestRun)/day)-1 && p.days.missing(n) {
			if err := p.makeDay(ctx, n); err != nil {
				return err
			}
		}
	}
	return nil
}

const partition = "onbeat_runs_" // and the day, such as 20260131

func partitionOf(n int64) string { return partition + time.Unix(n*86400, 0).UTC().Format("20060102") }

// makeDay makes the partition of a day. Where it cannot be made, because the user may not or rows of that day are in the default
// partition, the rows of the day go there.
func (p *postgres) makeDay(ctx context.Context, n int64) error {
	err := p.attach(ctx, n)
	switch state(err) {
	case "42501":
		if p.tell() {
			p.log.Warn().Err(err).Msg("archive makes no partitions: its user does not own the tables")
		}
		err = nil
	case "23514", "42P07":
		p.log.Warn().Err(err).Str("partition", partitionOf(n)).Msg("archive makes no partition of a day")
		err = nil
	}
	if err == nil {
		p.days.set(n)
	}
	return err
}

// tell reports whether this is the first time.
func (p *postgres) tell() bool {
	p.days.mu.Lock()
	defer p.days.mu.Unlock()
	told := p.days.told
	p.days.told = true
	return !told
}

// attach makes a table and attaches it. Unlike CREATE TABLE … PARTITION OF, that does not wait for those who read or write.
func (p *postgres) attach(ctx context.Context, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "select pg_advisory_xact_lock($1)", int64(partitionLock)); err != nil {
		return err
	}
	schema, all, err := partitionsOf(ctx, tx)
	if err != nil || all[partitionOf(n)] {
		return err
	}
	table := identifier(schema, partitionOf(n))
	parent := identifier(schema, runs.name)
	from, to := time.Unix(n*86400, 0).UTC(), time.Unix((n+1)*86400, 0).UTC()
	for _, statement := range []string{
		"create table " + table + " (like " + parent + " including defaults including constraints)",
		fmt.Sprintf("alter table %s attach partition %s for values from ('%s') to ('%s')", parent, table, from.Format(time.RFC3339), to.Format(time.RFC3339)),
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// querier is a transaction, or a database.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// partitionsOf returns the schema of onbeat_runs, and its partitions.
func partitionsOf(ctx context.Context, q querier) (schema string, all map[string]bool, err error) {
	rows, err := q.QueryContext(ctx, `select s.nspname, coalesce(c.relname, '') from pg_class p join pg_namespace s on s.oid = p.relnamespace
		left join pg_inherits i on i.inhparent = p.oid left join pg_class c on c.oid = i.inhrelid where p.oid = 'onbeat_runs'::regclass`)
	if err != nil {
		return "", nil, err
	}
	defer rows.Close()
	all = map[string]bool{}
	for rows.Next() {
		var table string
		if err := rows.Scan(&schema, &table); err != nil {
			return "", nil, err
		}
		all[table] = true
	}
	return schema, all, rows.Err()
}

// trimRuns makes the partitions of the next days, and drops those whose runs are too old. If a partition must stay for
// another namespace, or the user may not drop it, trimRuns removes its rows.
func (p *postgres) trimRuns(ctx context.Context, a *store, edge moment, now time.Time) error {
	p.days.forget()
	for n := dayOf(now); n <= dayOf(now)+ahead; n++ {
		if err := p.makeDay(ctx, n); err != nil {
			return err
		}
	}
	longest, schema, all, err := p.look(ctx)
	if err != nil {
		return err
	}
	stays := longest > a.keep
	for table := range all {
		began, err := time.Parse("20060102", strings.TrimPrefix(table, partition))
		if err != nil || began.Add(day+longestRun).After(now.Add(-longest)) {
			continue // the default one, one that a person made, or one with rows to keep
		}
		if err := p.drop(ctx, identifier(schema, table)); err != nil {
			if _, kind := p.kind(err); !errors.Is(kind, archive.ErrDenied) {
				return err
			}
			stays = true
		}
	}
	switch {
	case stays:
		return a.removeBefore(ctx, runs.name, "noted", edge)
	case all[runs.name+"_default"]:
		return a.removeBefore(ctx, runs.name+"_default", "noted", edge)
	}
	return nil
}

// look returns the longest time for which a namespace of this database keeps its rows, and the partitions with their schema.
func (p *postgres) look(ctx context.Context) (longest time.Duration, schema string, all map[string]bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var ms int64
	if err = p.db.QueryRowContext(ctx, "select coalesce(max(keep_ms), 0) from onbeat_positions").Scan(&ms); err == nil {
		schema, all, err = partitionsOf(ctx, p.db)
	}
	return max(time.Duration(ms)*time.Millisecond, p.keep), schema, all, err
}

// drop drops a partition. Everyone who comes to the table waits while the drop waits for those who read, so it waits for a second
// at most, and is tried again in the next Trim.
func (p *postgres) drop(ctx context.Context, table string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, statement := range []string{"set local lock_timeout = '1s'", "drop table " + table} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}
