package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

const builds = "builds"

var systems = []string{
	"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64", "freebsd/amd64", "freebsd/arm64",
}

// systems builds everything for each system. Tests run on this one alone, by the tables above.
func (m *matrix) systems() *table {
	t := &table{heading: "Systems", first: "system", columns: []string{builds, "promises"}}
	here := runtime.GOOS + "/" + runtime.GOARCH
	for _, name := range systems {
		t.rows = append(t.rows, row{
			name: name,
			find: func() (string, error) { return strings.TrimPrefix(runtime.Version(), "go"), nil },
			run: func(column string) string {
				switch {
				case column == builds:
					return m.build(name)
				case name != here:
					return notRun + "no such machine here"
				}
				return m.runSet(name, redisSets[0], "")
			},
		})
	}
	return t
}

func (m *matrix) build(system string) string {
	goos, goarch, _ := strings.Cut(system, "/")
	c := m.command(".", "go", "vet", "./...")
	c.Env = append(c.Env, "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return m.fail(system, part{folder: "."}, string(out))
	}
	return holds
}

var goLine = regexp.MustCompile(`(?m)^(?:go |toolchain go)(\S+)$`)

// goVersions are the lowest Go that go.mod promises, and the one that builds releases.
func (m *matrix) goVersions() *table {
	t := &table{heading: "Go", first: "line of go.mod", columns: []string{"promises"}}
	for i, name := range []string{"go", "toolchain"} {
		var version string
		t.rows = append(t.rows, row{
			name: name,
			find: func() (string, error) {
				text, err := os.ReadFile(filepath.Join(m.root, "go.mod"))
				if err != nil {
					return "", err
				}
				lines := goLine.FindAllSubmatch(text, -1)
				if len(lines) <= i {
					return "", errors.New("go.mod has no such line")
				}
				version = string(lines[i][1])
				c := m.command(".", "go", "version")
				c.Env = append(c.Env, "GOTOOLCHAIN=go"+version)
				if c.Run() != nil {
					return "", errors.New("this machine cannot get Go " + version)
				}
				return version, nil
			},
			run: func(string) string {
				p := part{run: promises}
				args := []string{"test", "-count=1", "-v", "-run", p.run}
				for _, of := range redisSets[0].parts {
					if of.folder != "integration" { // a module of its own
						args = append(args, "./"+of.folder)
					}
				}
				c := m.command(".", "go", args...)
				c.Env = append(c.Env, "GOTOOLCHAIN=go"+version)
				out, err := c.CombinedOutput()
				return m.verdict("Go "+version, p, out, err)
			},
		})
	}
	return t
}
