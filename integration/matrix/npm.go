package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// embedded are the versions of https://github.com/leinelissen/embedded-postgres: builds of PostgreSQL that run where they are unpacked.
var embedded = []string{"13.23.0-beta.16", "14.23.0-beta.17", "15.18.0-beta.17", "16.14.0-beta.17", "17.10.0-beta.17", "18.4.0-beta.17"}

func (m *matrix) fromNPM() (list []program) {
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	if runtime.GOOS != "linux" || arch == "" {
		return nil
	}
	name := "@embedded-postgres/linux-" + arch
	for _, version := range embedded {
		path, err := m.install(name, version)
		if err != nil {
			fmt.Fprintf(m.out, "%s@%s: %v\n", name, version, err)
			continue
		}
		list = append(list, asPostgres(path))
	}
	return list
}

// install returns the initdb of a version.
func (m *matrix) install(name, version string) (string, error) {
	dir := filepath.Join(m.work, "npm", version)
	unpacked := filepath.Join(dir, "node_modules", name)
	initdb := filepath.Join(unpacked, "native", "bin", "initdb")
	if _, err := os.Stat(initdb); err == nil {
		return initdb, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := m.do("npm", "install", "--prefix", dir, "--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", name+"@"+version); err != nil {
		return "", err
	}
	return initdb, link(unpacked)
}

// link makes the symbolic links that a package of npm cannot hold, as its own script would.
func link(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "native", "pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return err
	}
	for _, l := range links {
		from, err := filepath.Rel(filepath.Dir(l.Target), l.Source)
		if err != nil {
			return err
		}
		if err := os.Symlink(from, filepath.Join(dir, l.Target)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
