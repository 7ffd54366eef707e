package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onbeat/onbeat/internal/embedded"
)

// postgresServer is a cluster with PostgreSQL's own settings, on 127.0.0.1 and a free port.
type postgresServer struct {
	url, dir string
	cmd      *exec.Cmd
}

// findPostgres returns the folder of initdb and postgres.
func findPostgres() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errors.New("PostgreSQL's initdb is not installed")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// startPostgres makes a cluster and starts it. PostgreSQL refuses to run as root, so then the user postgres runs it.
func startPostgres(ctx context.Context) (*postgresServer, error) {
	bin, err := findPostgres()
	if err != nil {
		return nil, err
	}
	p := &postgresServer{}
	if p.dir, err = os.MkdirTemp("", "onbeat-bench-postgres-"); err != nil {
		return nil, err
	}
	runtime.LockOSThread() // the cluster ends with the thread that started it
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
	if os.Getuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := errors.Join(err1, err2, os.Chown(p.dir, uid, gid)); err != nil {
			return nil, err
		}
	}
	data := filepath.Join(p.dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = attr, p.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, bytes.TrimSpace(out))
	}
	port, err := embedded.FreePort()
	if err != nil {
		return nil, err
	}
	p.url = fmt.Sprintf("postgres://bench@127.0.0.1:%d/postgres?sslmode=disable", port)
	p.cmd = exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories="+p.dir, "-c", "max_connections=300", "-c", "log_min_messages=fatal")
	p.cmd.SysProcAttr, p.cmd.Dir = attr, p.dir
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if _, err = p.read(ctx); err == nil {
			return p, nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			p.stop()
			return nil, fmt.Errorf("postgres does not answer: %w", err)
		}
	}
}

// stop ends the cluster by its fast shutdown, and removes it.
func (p *postgresServer) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	_ = p.cmd.Wait()
	_ = os.RemoveAll(p.dir)
}

// read reads what the cluster has used: processor time of all its processes, transactions, and the size of the table of jobs.
func (p *postgresServer) read(ctx context.Context) (u used, err error) {
	c, err := pgx.Connect(ctx, p.url)
	if err != nil {
		return u, err
	}
	defer c.Close(ctx)
	u.cpu = p.cpu()
	return u, c.QueryRow(ctx, `select (select xact_commit + xact_rollback from pg_stat_database where datname = current_database())::float8,
		coalesce((select sum(pg_total_relation_size(oid)) from pg_class where relname = 'river_job'), 0)::float8`).Scan(&u.commands, &u.bytes)
}

// cpu adds up the postmaster, its children, and those of its children that have ended, in µs.
func (p *postgresServer) cpu() (sum float64) {
	const tick = 1e6 / 100 // of /proc/PID/stat
	postmaster := strconv.Itoa(p.cmd.Process.Pid)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		fields := f[11:13] // utime and stime of its own
		if filepath.Base(filepath.Dir(path)) == postmaster {
			fields = f[11:15] // and of its children that have ended
		} else if f[1] != postmaster {
			continue
		}
		for _, text := range fields {
			n, _ := strconv.ParseFloat(text, 64)
			sum += n * tick
		}
	}
	return sum
}
