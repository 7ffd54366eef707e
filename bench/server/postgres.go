package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postgres is a cluster of its own, with PostgreSQL's own settings, on 127.0.0.1 and a free port.
type Postgres struct {
	port int
	cmd  *exec.Cmd
	dir  string
	gone chan struct{}
	made int
}

// FindPostgres returns the folder of initdb and postgres, or an error that says that they are not installed.
func FindPostgres() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errors.New("PostgreSQL's initdb is not installed")
	}
	slices.SortFunc(found, func(a, b string) int { return major(b) - major(a) })
	return filepath.Dir(found[0]), nil
}

// major is the version in /usr/lib/postgresql/15/bin/initdb.
func major(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// StartPostgres makes a cluster and starts it. It refuses to run as root, so then the user postgres runs it.
func StartPostgres(ctx context.Context) (*Postgres, error) {
	bin, err := FindPostgres()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "onbeat-bench-postgres-")
	if err != nil {
		return nil, err
	}
	attr := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		if attr.Credential, err = credential("postgres"); err == nil {
			err = os.Chown(dir, int(attr.Credential.Uid), int(attr.Credential.Gid))
		}
		if err != nil {
			return nil, err
		}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C")
	initdb.SysProcAttr, initdb.Dir = attr, dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, bytes.TrimSpace(out))
	}
	p := &Postgres{dir: dir, gone: make(chan struct{})}
	if p.port, err = freePort(ctx); err != nil {
		return nil, err
	}
	p.cmd = exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", strconv.Itoa(p.port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories="+dir, "-c", "max_connections=300", "-c", "log_min_messages=fatal")
	p.cmd.SysProcAttr, p.cmd.Dir = attr, dir
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.gone)
	}()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if err = p.exec(ctx, "select 1"); err == nil {
			return p, nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			p.Stop()
			return nil, fmt.Errorf("postgres does not answer: %w", err)
		}
	}
}

func credential(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
}

// Stop ends the cluster and removes it.
func (p *Postgres) Stop() {
	end(p.cmd.Process, p.gone, syscall.SIGINT) // its fast shutdown
	_ = os.RemoveAll(p.dir)
}

func (p *Postgres) url(db string) string {
	return fmt.Sprintf("postgres://bench@127.0.0.1:%d/%s?sslmode=disable", p.port, db)
}

func (p *Postgres) exec(ctx context.Context, sql string) error {
	c, err := pgx.Connect(ctx, p.url("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql)
	return err
}

// NewDatabase makes an empty database and drops the one before.
func (p *Postgres) NewDatabase(ctx context.Context) (url string, err error) {
	if p.made > 0 {
		if err := p.exec(ctx, fmt.Sprintf("drop database if exists bench%d with (force)", p.made)); err != nil {
			return "", err
		}
	}
	p.made++
	name := fmt.Sprintf("bench%d", p.made)
	return p.url(name), p.exec(ctx, "create database "+name)
}

// Read reads what the cluster has used: processor time of all its processes, by /proc, and the size of the database.
func (p *Postgres) Read(ctx context.Context) (Used, error) {
	var u Used
	c, err := pgx.Connect(ctx, p.url(fmt.Sprintf("bench%d", p.made)))
	if err != nil {
		return u, err
	}
	defer c.Close(ctx)
	var xacts, size int64
	err = c.QueryRow(ctx, `select coalesce((select xact_commit + xact_rollback from pg_stat_database where datname = current_database()), 0),
		coalesce((select sum(pg_total_relation_size(oid)) from pg_class where relname = 'river_job'), 0)::bigint`).Scan(&xacts, &size)
	u.Commands, u.Bytes, u.CPU = float64(xacts), float64(size), p.cpu()
	return u, err
}

// cpu adds up the postmaster, its children, and those of its children that have ended, in µs.
func (p *Postgres) cpu() float64 {
	const tick = 1e6 / 100 // of /proc/PID/stat, in µs
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var sum float64
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(f) < 15 {
			continue
		}
		fields := []int{11, 12} // utime, stime; of its own
		switch parent, _ := strconv.Atoi(f[1]); {
		case pid == p.cmd.Process.Pid:
			fields = append(fields, 13, 14) // and of its children that have ended
		case parent != p.cmd.Process.Pid:
			continue
		}
		for _, i := range fields {
			n, _ := strconv.ParseFloat(f[i], 64)
			sum += n * tick
		}
	}
	return sum
}

// PostgresVersion is the version that would be started.
func PostgresVersion(ctx context.Context) string {
	bin, err := FindPostgres()
	if err != nil {
		return ""
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return ""
	}
	f := strings.Fields(string(out))
	if len(f) < 3 {
		return ""
	}
	return f[2]
}
