package outbox

import (
	"context"
	"database/sql"
	_ "embed" // for the statements that make the table
	"fmt"
	"time"

	"github.com/onbeat/onbeat/task"
)

// dialect is what differs between the databases. Lists of rows are passed as JSON, which both read.
type dialect struct {
	table  string // the statements that make it
	exists string // counts the tables
	alone  string // lets one caller at a time make the table; "": a transaction does that here
	bounds string // ends the session of a mover that stands still, with its locks; "": there is none

	count  string // rows that wait: of a namespace, and of none
	state  string // of a namespace: rows that wait, seconds that the first has, rows that were refused
	why    string // the error of the last row that was refused
	adopt  string // gives the first rows of no namespace one
	lock   string // the first rows of a namespace without those listed, and their sizes
	read   string
	name   string // of rows, their tasks and types, unless these are long
	remove string
	refuse string

	// options are those of a transaction that moves rows. In PostgreSQL it must see what others commit meanwhile, or it would fail for
	// their rows.
	options *sql.TxOptions
	// within bounds a move of a batch. The lock of SQLite keeps all others from writing.
	within time.Duration
}

//go:embed tables/postgres.sql
var postgresTable string

//go:embed tables/sqlite.sql
var sqliteTable string

// countUpTo bounds what counting costs when very many rows wait.
const countUpTo = 10_000

const waiting = "FROM onbeat_outbox WHERE namespace = $1 AND refused IS NULL"

var counting = fmt.Sprintf("SELECT (SELECT count(*) FROM (SELECT 1 %s LIMIT %d) own), (SELECT count(*) FROM (SELECT 1 %s LIMIT %d) free)",
	waiting, countUpTo, "FROM onbeat_outbox WHERE namespace = '' AND refused IS NULL", countUpTo)

// short is a column of a statement that is empty if it holds more than a name may have.
func short(column, length string) string {
	return fmt.Sprintf("CASE WHEN %s(%s) <= %d THEN %s ELSE '' END", length, column, 4*task.MaxIDLen, column)
}

// These statements do not wait for other movers: they pass over rows that another mover has locked, and every wait for the
// database ends within 20 s. A mover that freezes with rows locked loses its session after the time for which Redis accepts its call.
var postgres = dialect{
	table:  postgresTable,
	exists: "SELECT count(*) FROM pg_class WHERE oid = to_regclass('onbeat_outbox')",
	alone:  "SELECT pg_advisory_xact_lock(hashtext('onbeat_outbox'))",
	bounds: "SELECT set_config('statement_timeout', '20s', true), set_config('idle_in_transaction_session_timeout', '30s', true)",
	count:  counting,
	state: `SELECT count(*) FILTER (WHERE refused IS NULL),
		coalesce(extract(epoch FROM clock_timestamp() - min(added) FILTER (WHERE refused IS NULL AND isfinite(added))), 0)::float8,
		count(*) FILTER (WHERE refused IS NOT NULL) FROM onbeat_outbox WHERE namespace IN ($1, '')`,
	why: "SELECT coalesce(error, '') FROM onbeat_outbox WHERE namespace IN ($1, '') AND refused IS NOT NULL ORDER BY refused DESC LIMIT 1",
	adopt: `UPDATE onbeat_outbox SET namespace = $1 WHERE id IN
		(SELECT id FROM onbeat_outbox WHERE namespace = '' AND refused IS NULL ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)`,
	lock: "SELECT id, octet_length(record)::bigint + octet_length(task) + octet_length(mark) + octet_length(unique_key) " + waiting +
		" AND id NOT IN (SELECT v::bigint FROM json_array_elements_text($3::json) v) ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED",
	read: `SELECT id, task, record, mark,
		greatest(0, least(delay_ms, ceil(delay_ms - CASE WHEN isfinite(added) THEN extract(epoch FROM clock_timestamp() - added)::numeric * 1000 ELSE 0 END)))::bigint,
		unique_key, unique_ms
		FROM onbeat_outbox WHERE id IN (SELECT v::bigint FROM json_array_elements_text($1::json) v) ORDER BY id`,
	name: fmt.Sprintf("SELECT id, %s, %s FROM onbeat_outbox WHERE id IN (SELECT v::bigint FROM json_array_elements_text($1::json) v) ORDER BY id",
		short("task", "octet_length"), short("type", "octet_length")),
	remove: "DELETE FROM onbeat_outbox WHERE id IN (SELECT v::bigint FROM json_array_elements_text($1::json) v)",
	refuse: "UPDATE onbeat_outbox SET refused = clock_timestamp(), error = $2 WHERE id = $1",
	within: 20 * time.Second, options: &sql.TxOptions{Isolation: sql.LevelReadCommitted},
}

const sqliteNow = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"

// A transaction of SQLite begins with its write lock, so the rows need none of their own. A column may hold what is no number there.
var sqlite = dialect{
	table:  sqliteTable,
	exists: "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'onbeat_outbox'",
	count:  counting,
	state: `SELECT count(*) FILTER (WHERE refused IS NULL), coalesce((` + sqliteNow + ` - min(added) FILTER (WHERE refused IS NULL)) / 1000.0, 0.0),
		count(*) FILTER (WHERE refused IS NOT NULL) FROM onbeat_outbox WHERE namespace IN ($1, '')`,
	why: "SELECT coalesce(error, '') FROM onbeat_outbox WHERE namespace IN ($1, '') AND refused IS NOT NULL ORDER BY refused DESC LIMIT 1",
	adopt: `UPDATE onbeat_outbox SET namespace = $1 WHERE id IN
		(SELECT id FROM onbeat_outbox WHERE namespace = '' AND refused IS NULL ORDER BY id LIMIT $2)`,
	lock: "SELECT id, length(record) + length(task) + length(mark) + length(unique_key) " + waiting +
		" AND id NOT IN (SELECT value FROM json_each($3)) ORDER BY id LIMIT $2",
	read: `SELECT id, task, record, mark, CAST(max(0, min(delay_ms, delay_ms + 1 - (` + sqliteNow + ` - added))) AS INTEGER), unique_key,
		CAST(unique_ms AS INTEGER)
		FROM onbeat_outbox WHERE id IN (SELECT value FROM json_each($1)) ORDER BY id`,
	name: fmt.Sprintf("SELECT id, %s, %s FROM onbeat_outbox WHERE id IN (SELECT value FROM json_each($1)) ORDER BY id",
		short("task", "length"), short("type", "length")),
	remove: "DELETE FROM onbeat_outbox WHERE id IN (SELECT value FROM json_each($1))",
	refuse: "UPDATE onbeat_outbox SET refused = " + sqliteNow + ", error = $2 WHERE id = $1",
	within: 4 * time.Second,
}

// migrate makes the table, if it is not there. A user without the right to make tables may go on with one that is there.
func (d *dialect) migrate(ctx context.Context, db *sql.DB) error {
	there, err := d.there(ctx, db)
	if err != nil || there {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("make the table onbeat_outbox: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	if d.alone != "" {
		if _, err := tx.ExecContext(ctx, d.alone); err != nil {
			return fmt.Errorf("make the table onbeat_outbox: %w", err)
		}
	}
	if there, err := d.there(ctx, tx); err != nil || there {
		return err
	}
	if _, err := tx.ExecContext(ctx, d.table); err != nil {
		return fmt.Errorf("make the table onbeat_outbox: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("make the table onbeat_outbox: %w", err)
	}
	return nil
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (d *dialect) there(ctx context.Context, q querier) (bool, error) {
	var n int
	if err := q.QueryRowContext(ctx, d.exists).Scan(&n); err != nil {
		return false, fmt.Errorf("look for the table onbeat_outbox: %w", err)
	}
	return n > 0, nil
}
