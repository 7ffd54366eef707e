// Package postgres lets an archive and an outbox be in PostgreSQL. It has nothing to call: a program imports it for its effect.
//
//	import _ "github.com/onbeat/onbeat/postgres"
//
// A program with an archive or outbox in SQLite imports modernc.org/sqlite in its place. So each links only the database that it uses.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/onbeat/onbeat/internal/database"
)

const (
	// connectTimeout is how long a server may take to answer at first, unless the URL says connect_timeout.
	connectTimeout = 10 * time.Second
	// keepAlive is how often a connection on which nothing happens is tried, so that a network that died is found.
	keepAlive = 15 * time.Second
	// How long it may take to begin to listen, and to say goodbye.
	beginTime = 20 * time.Second
	closeTime = 2 * time.Second
)

func init() {
	database.RegisterPostgres(func(url string) (database.Postgres, error) {
		s, err := parse(url)
		if err != nil {
			return nil, err
		}
		return s, nil
	})
}

// server is what pgx knows of a server.
type server struct{ *pgx.ConnConfig }

func parse(url string) (*server, error) {
	conf, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	if conf.ConnectTimeout == 0 {
		conf.ConnectTimeout = connectTimeout
	}
	conf.DialFunc = (&net.Dialer{KeepAlive: keepAlive}).DialContext
	return &server{conf}, nil
}

// Default implements [database.Postgres].
func (s *server) Default(name, value string) {
	if _, set := s.RuntimeParams[name]; !set {
		s.RuntimeParams[name] = value
	}
}

// Password implements [database.Postgres].
func (s *server) Password() string { return s.ConnConfig.Password }

// Open implements [database.Postgres].
func (s *server) Open(begin string) *sql.DB {
	if begin == "" {
		return stdlib.OpenDB(*s.ConnConfig)
	}
	return stdlib.OpenDB(*s.ConnConfig, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, begin)
		return err
	}))
}

// Unreachable implements [database.Postgres].
func (*server) Unreachable(err error) bool {
	var dial *pgconn.ConnectError
	return errors.As(err, &dial) || pgconn.Timeout(err) || errors.Is(err, pgconn.ErrConnClosed)
}

// Listen implements [database.Postgres].
func (s *server) Listen(ctx context.Context, channel string, told func()) {
	dial, done := context.WithTimeout(ctx, beginTime)
	defer done()
	conn, err := pgx.ConnectConfig(dial, s.ConnConfig)
	if err != nil {
		return
	}
	defer func() {
		closing, done := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer done()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(dial, "LISTEN "+channel); err != nil {
		return
	}
	for err == nil {
		told()
		_, err = conn.WaitForNotification(ctx)
	}
}
