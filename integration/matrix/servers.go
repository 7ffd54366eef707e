package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A program is a server that this machine has.
type program struct {
	kind, version string
	bin           string // a folder for PATH, with the program by the name that tests look for
}

var (
	redisSeries    = []string{"Redis 6.2", "Redis 7.0", "Redis 7.2", "Redis 7.4", "Redis 8.0", "Redis 8", "Valkey 7.2", "Valkey 8.0", "Valkey 8", "Valkey 9"}
	postgresSeries = []string{"PostgreSQL 13", "PostgreSQL 14", "PostgreSQL 15", "PostgreSQL 16", "PostgreSQL 17", "PostgreSQL 18"}
)

func (m *matrix) redis(given string) *table {
	t := &table{heading: "Redis and Valkey", first: "server", columns: names(redisSets)}
	m.addRows(t, redisSeries, redisSets, func() []program {
		list := m.found(given, "redis-server", "valkey-server")
		if path, err := exec.LookPath("redis-server"); err == nil {
			list = append(list, m.asRedis(path))
		}
		return append(list, m.fromDebian()...)
	})
	return t
}

func (m *matrix) postgres(given string) *table {
	t := &table{heading: "PostgreSQL", first: "server", columns: names(postgresSets)}
	m.addRows(t, postgresSeries, postgresSets, func() []program {
		return append(m.found(given, "initdb"), m.fromNPM()...)
	})
	return t
}

// addRows adds a row for each series. A row takes the newest program that it fits best.
func (m *matrix) addRows(t *table, series []string, sets []set, look func() []program) {
	have := sync.OnceValue(look)
	for _, name := range series {
		var p program
		t.rows = append(t.rows, row{
			name: name,
			find: func() (string, error) {
				for _, one := range have() {
					if seriesOf(one, series) == name && compare(one.version, p.version) > 0 {
						p = one
					}
				}
				if p.bin == "" {
					return "", errors.New("this machine has no server of that version")
				}
				return p.version, nil
			},
			run: func(column string) string {
				return m.runSet(name, sets[slices.IndexFunc(sets, func(s set) bool { return s.name == column })], p.bin)
			},
		})
	}
}

// seriesOf returns the longest series that a version belongs to.
func seriesOf(p program, series []string) (best string) {
	for _, s := range series {
		if kind, of, _ := strings.Cut(s, " "); kind == p.kind && strings.HasPrefix(p.version+".", of+".") && len(s) > len(best) {
			best = s
		}
	}
	return best
}

// compare compares versions such as 7.0.15.
func compare(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(a, b string) int {
		x, _ := strconv.Atoi(a)
		y, _ := strconv.Atoi(b)
		return cmp.Compare(x, y)
	})
}

// found looks for programs of these names below a folder.
func (m *matrix) found(folder string, programs ...string) (list []program) {
	if folder == "" {
		return nil
	}
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !slices.Contains(programs, e.Name()) {
			return err
		}
		if e.Name() == "initdb" {
			list = append(list, asPostgres(path))
		} else {
			list = append(list, m.asRedis(path))
		}
		return nil
	})
	if err != nil {
		fmt.Fprintln(m.out, err)
	}
	return list
}

var (
	redisVersion    = regexp.MustCompile(`v=(\S+)`)
	postgresVersion = regexp.MustCompile(`PostgreSQL\) (\S+)`)
)

// asRedis makes a program of a server, whatever it is called. It is no program of any series if it does not say its version.
func (m *matrix) asRedis(path string) program {
	path, err := filepath.Abs(path)
	if err != nil {
		return program{}
	}
	out, _ := exec.CommandContext(m.ctx, path, "--version").Output()
	said := redisVersion.FindSubmatch(out)
	if said == nil {
		return program{}
	}
	p := program{kind: "Redis", version: string(said[1])}
	if strings.Contains(strings.ToLower(string(out)+filepath.Base(path)), "valkey") {
		p.kind = "Valkey"
	}
	p.bin = filepath.Join(m.work, "servers", p.kind+"-"+p.version)
	link := filepath.Join(p.bin, "redis-server")
	_ = os.Remove(link)
	if err := errors.Join(os.MkdirAll(p.bin, 0o755), os.Symlink(path, link)); err != nil {
		fmt.Fprintln(m.out, err)
		return program{}
	}
	return p
}

func asPostgres(initdb string) program {
	out, _ := exec.Command(initdb, "--version").Output()
	if said := postgresVersion.FindSubmatch(out); said != nil {
		return program{kind: "PostgreSQL", version: string(said[1]), bin: filepath.Dir(initdb)}
	}
	return program{}
}
