package main

import (
	"context"
	"net"
	"os"
	"strconv"

	"github.com/onbeat/onbeat/integration/internal/postgres"
	"github.com/onbeat/onbeat/internal/embedded"
)

// store is the Redis or the PostgreSQL of one story. It keeps its data while it is away.
type store interface {
	// address is what the replicas connect to.
	address() string
	down() error
	up(ctx context.Context) error
	close()
}

// openStore starts the store that a peer works on.
func openStore(ctx context.Context, peer string) (store, error) {
	if peer != "river" {
		dir, err := os.MkdirTemp("", "onbeat-beat-redis-")
		if err != nil {
			return nil, err
		}
		r := &redisStore{dir: dir}
		return r, r.up(ctx)
	}
	p, err := postgres.Start(ctx)
	if err == nil {
		err = migrateRiver(ctx, p.URL)
	}
	return &postgresStore{p}, err
}

// redisStore is a redis-server with an append-only file that it writes each second, which each of the peers on Redis advises.
type redisStore struct {
	*embedded.Server
	dir  string
	port int
}

func (r *redisStore) address() string { return r.Addr() }
func (r *redisStore) down() error     { return r.Close() }

func (r *redisStore) up(ctx context.Context) (err error) {
	if r.Server, err = embedded.Start(ctx, embedded.Options{Dir: r.dir, Port: r.port, NoPassword: true}); err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(r.Addr())
	if err == nil {
		r.port, err = strconv.Atoi(port)
	}
	return err
}

func (r *redisStore) close() {
	if r.Server != nil {
		_ = r.Close()
	}
	_ = os.RemoveAll(r.dir)
}

type postgresStore struct{ *postgres.Server }

func (p *postgresStore) address() string              { return p.URL }
func (p *postgresStore) down() error                  { p.Down(); return nil }
func (p *postgresStore) up(ctx context.Context) error { return p.Up(ctx) }

func (p *postgresStore) close() {
	if p.Server != nil {
		p.Stop()
	}
}
