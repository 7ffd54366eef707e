package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/onbeat/onbeat/integration/internal/postgres"
)

// postgresServer is a cluster with PostgreSQL's own settings.
type postgresServer struct{ *postgres.Server }

func startPostgres(ctx context.Context) (*postgresServer, error) {
	s, err := postgres.Start(ctx)
	return &postgresServer{s}, err
}

func (p *postgresServer) stop() { p.Stop() }

// read reads what the cluster has used: processor time of all its processes, transactions, and the size of the table of jobs.
func (p *postgresServer) read(ctx context.Context) (u used, err error) {
	c, err := pgx.Connect(ctx, p.URL)
	if err != nil {
		return u, err
	}
	defer c.Close(ctx)
	u.cpu = processorTimeOf(p.PID())
	return u, c.QueryRow(ctx, `select (select xact_commit + xact_rollback from pg_stat_database where datname = current_database())::float8,
		coalesce((select sum(pg_total_relation_size(oid)) from pg_class where relname = 'river_job'), 0)::float8`).Scan(&u.commands, &u.bytes)
}

// processorTimeOf adds up a process, its children, and those of its children that have ended, in µs.
func processorTimeOf(pid int) (sum float64) {
	const tick = 1e6 / 100 // of /proc/PID/stat
	parent := strconv.Itoa(pid)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		fields := f[11:13] // utime and stime of its own
		if filepath.Base(filepath.Dir(path)) == parent {
			fields = f[11:15] // and of its children that have ended
		} else if f[1] != parent {
			continue
		}
		for _, text := range fields {
			n, _ := strconv.ParseFloat(text, 64)
			sum += n * tick
		}
	}
	return sum
}
