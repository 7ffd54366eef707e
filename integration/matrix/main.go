// Command matrix runs the tests that hold onbeat's promises on each server, Go and system that it supports, as far as they can be had
// on this machine, and writes the tables of docs/support.md. `make matrix` runs it.
//
// Servers come from Debian's archive and from npm. Others it finds by their programs in the folders below -servers: a redis-server or a
// valkey-server, or an initdb with its postgres.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

// matrix is one run.
type matrix struct {
	ctx  context.Context
	out  io.Writer
	root string // the repository
	work string // a folder of downloads and compiled programs; it stays for the next run
	only *regexp.Regexp

	tests map[string]string // the test program of a folder
}

func run(ctx context.Context, args []string, out io.Writer) error {
	m := &matrix{ctx: ctx, out: out, tests: map[string]string{}}
	flags := flag.NewFlagSet("matrix", flag.ContinueOnError)
	flags.StringVar(&m.root, "root", "..", "the repository")
	only := flags.String("only", "", "run only the rows whose names match this")
	servers := flags.String("servers", os.Getenv("MATRIX_SERVERS"), "a folder with programs of servers in it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if m.only, err = regexp.Compile(*only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if m.root, err = filepath.Abs(m.root); err != nil {
		return err
	}
	m.work = filepath.Join(m.root, "bin", "matrix")
	tables := m.tables(*servers)
	failed := false
	for _, t := range tables {
		for i := range t.rows {
			r := &t.rows[i]
			if !m.only.MatchString(r.name) {
				continue
			}
			if m.fill(r, t); ctx.Err() != nil {
				return ctx.Err()
			}
			if err := writePage(filepath.Join(m.root, "docs", "support.md"), tables); err != nil {
				return err
			}
			failed = failed || r.failed()
		}
	}
	if failed {
		return errors.New("some cells fail")
	}
	return nil
}

// fill runs the cells of a row, and prints each as it comes.
func (m *matrix) fill(r *row, t *table) {
	version, why := r.find()
	if why != nil {
		r.cells = append(r.cells, notRun+why.Error())
		fmt.Fprintf(m.out, "%-18s %s\n", r.name, r.cells[0])
		return
	}
	r.cells = []string{version + ", " + time.Now().UTC().Format(time.DateOnly)}
	for _, column := range t.columns {
		if m.ctx.Err() != nil {
			return
		}
		cell := r.run(column)
		r.cells = append(r.cells, cell)
		fmt.Fprintf(m.out, "%-18s %-12s %-24s %s\n", r.name, version, column, cell)
	}
}
