package sqlarchive

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/database"
)

// limits end what would wait for ever, on the server: a statement, a wait for a lock, and the transaction of a process that
// stands still, which would keep its successor from the position. Parameters of the URL go before.
var limits = map[string]string{
	"statement_timeout": "60s", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "30s",
}

type postgres struct {
	db     *sql.DB
	server database.Postgres
	log    zerolog.Logger
	keep   time.Duration
	days   days
}

func (a *store) openPostgres() (err error) {
	for name, value := range limits {
		a.where.Postgres.Default(name, value)
	}
	if a.db, err = a.where.Open("", durable); err != nil {
		return err
	}
	a.db.SetMaxOpenConns(mostConns)
	a.db.SetMaxIdleConns(mostConns)
	a.db.SetConnMaxIdleTime(5 * time.Minute)
	a.db.SetConnMaxLifetime(15 * time.Minute) // then it follows a name that means another server
	a.engine = &postgres{db: a.db, server: a.where.Postgres, log: a.log, keep: a.keep}
	return nil
}

// durable makes a commit wait for the disk, even where the database is set not to: Redis drops what is archived, so a crash that
// took a commit back would lose its rows. A stricter setting stays.
const durable = "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'"

func (*postgres) time(m moment) any {
	if m.IsZero() {
		return nil
	}
	return m.Time
}

// insert sends each column as an array, in one statement.
func (*postgres) insert(ctx context.Context, tx *sql.Tx, t *table, namespace string, rows []row) error {
	arrays, types := columnsOf(rows)
	values, from := make([]string, len(types)), make([]string, len(types))
	for i, kind := range types {
		values[i], from[i] = t.columns[i], fmt.Sprintf("$%d::%s[]", i+2, kind)
		if _, ok := rows[0].values()[i].(*object); ok {
			values[i] += "::jsonb"
		}
	}
	_, err := tx.ExecContext(ctx, "insert into "+t.name+" (namespace, "+t.list()+") select $1, "+strings.Join(values, ", ")+
		" from unnest("+strings.Join(from, ", ")+") as added ("+t.list()+") on conflict do nothing", append([]any{namespace}, arrays...)...)
	return err
}

// columnsOf turns rows into an array for each column, and the types of their elements.
func columnsOf(rows []row) (arrays []any, types []string) {
	for _, v := range rows[0].values() {
		var array any
		kind := "text"
		switch v.(type) {
		case *int64:
			array, kind = make([]int64, len(rows)), "bigint"
		case *number:
			array, kind = make([]*int64, len(rows)), "bigint"
		case *moment:
			array, kind = make([]*time.Time, len(rows)), "timestamptz"
		default:
			array = make([]string, len(rows))
		}
		arrays, types = append(arrays, array), append(types, kind)
	}
	for i, r := range rows {
		for c, v := range r.values() {
			switch v := v.(type) {
			case *string:
				arrays[c].([]string)[i] = *v
			case *object:
				arrays[c].([]string)[i] = v.String()
			case *int64:
				arrays[c].([]int64)[i] = *v
			case *number:
				if *v != 0 {
					arrays[c].([]*int64)[i] = (*int64)(v)
				}
			case *moment:
				if !v.IsZero() {
					arrays[c].([]*time.Time)[i] = &v.Time
				}
			}
		}
	}
	return arrays, types
}

// migrationLock is the advisory lock under which the tables are migrated, and partitionLock that under which partitions are made.
const (
	migrationLock = 0x6f6e626561740001 // onbeat 1
	partitionLock = 0x6f6e626561740002
)

func (*postgres) migrations() migrating {
	return migrating{
		folder: "migrations/postgres", tables: append([]string{runs.name + "_default"}, ownTables...),
		there: "select count(*) from pg_catalog.pg_class where oid in (select to_regclass(name) from unnest(array[LIST]) name)",
		begin: fmt.Sprintf("set local lock_timeout = '60s'; select pg_advisory_xact_lock(%d)", int64(migrationLock)),
	}
}

// state is the SQLSTATE of an error, or "".
func state(err error) string {
	if said := interface{ SQLState() string }(nil); errors.As(err, &said) {
		return said.SQLState()
	}
	return ""
}

// identifier is a name of a schema and one in it, quoted.
func identifier(schema, name string) string {
	quoted := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	return quoted(schema) + "." + quoted(name)
}

func (p *postgres) kind(err error) (string, error) {
	if code := state(err); code != "" {
		return kindOfState(code)
	}
	var untrusted *tls.CertificateVerificationError
	var network net.Error
	switch {
	case errors.As(err, &untrusted):
		return "the server's certificate is not trusted: see sslmode and sslrootcert", archive.ErrDenied
	case p.server.Unreachable(err), errors.As(err, &network), errors.Is(err, driver.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "", archive.ErrUnavailable
	}
	return "", nil
}

// kindOfState goes by the SQLSTATE of an error.
func kindOfState(code string) (string, error) {
	switch {
	case code == "53100" || code == "53200":
		return "", archive.ErrFull
	case strings.HasPrefix(code, "28"):
		return "see the user and the password in the archive's URL, and pg_hba.conf", archive.ErrDenied
	case code == "3D000":
		return "create the database", archive.ErrDenied
	case code == "42501":
		return "grant the user CREATE on the schema, or have a user with that right open the archive once and grant SELECT, INSERT, UPDATE and DELETE on its tables", archive.ErrDenied
	case code == "23514", code == "55P03", code == "25006", code == "25P03":
		return "", archive.ErrUnavailable // a partition was dropped just now; a lock; a server that is a replica; a pause of this process
	case strings.HasPrefix(code, "08"), strings.HasPrefix(code, "40"), strings.HasPrefix(code, "53"), strings.HasPrefix(code, "57"):
		return "", archive.ErrUnavailable // the connection, a deadlock, too many connections, a shutdown or a timeout
	case code == "42P01":
		return "", archive.ErrTables
	case code == "42703" || code == "23502":
		return "the tables are not those of this release: see onbeat_archive_versions", nil
	}
	return "", nil
}
