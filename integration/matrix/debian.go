package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// suites are the suites of Debian's archive that have a server of another series, with the suites that they need.
var suites = []struct{ name, below, server string }{
	{"bookworm", "", "redis-server"},
	{"trixie", "", "redis-server"},
	{"experimental", "sid", "redis-server"},
	{"bookworm-backports", "bookworm", "valkey-server"},
	{"trixie", "", "valkey-server"},
	{"forky", "", "valkey-server"},
}

// fromDebian unpacks the servers of other releases of Debian, with the libraries that they need. Nothing is installed.
func (m *matrix) fromDebian() (list []program) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil
	}
	for _, s := range suites {
		path, err := m.unpack(s.name, s.below, s.server)
		if err != nil {
			fmt.Fprintf(m.out, "%s of Debian %s: %v\n", s.server, s.name, err)
			continue
		}
		list = append(list, m.asRedis(path))
	}
	return list
}

// unpack returns a program that starts the server of a suite by the loader of that suite.
func (m *matrix) unpack(suite, below, server string) (string, error) {
	dir := filepath.Join(m.work, "debian", suite+"-"+server)
	program := filepath.Join(dir, "bin", server)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	sources := ""
	for _, s := range []string{below, suite} {
		if s != "" {
			sources += "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian " + s + " main\n"
		}
	}
	debs, root := filepath.Join(dir, "debs"), filepath.Join(dir, "root")
	apt := func(args ...string) error {
		all := []string{"-qq", "-o", "Dir=" + dir, "-o", "Dir::State=state", "-o", "Dir::State::status=" + filepath.Join(dir, "status"),
			"-o", "Dir::Cache=cache", "-o", "Dir::Cache::archives=" + debs, "-o", "Dir::Etc=etc", "-o", "Dir::Etc::sourcelist=sources.list",
			"-o", "Dir::Etc::sourceparts=none", "-o", "Dir::Etc::preferencesparts=none", "-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=1"}
		return m.do("apt-get", append(all, args...)...)
	}
	for _, d := range []string{"state/lists/partial", "cache", "debs/partial", "etc", "root", "bin"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return "", err
		}
	}
	err := errors.Join(os.WriteFile(filepath.Join(dir, "status"), nil, 0o644), os.WriteFile(filepath.Join(dir, "etc", "sources.list"), []byte(sources), 0o644))
	if err != nil {
		return "", err
	}
	if err := apt("update"); err != nil {
		return "", err
	}
	if err := apt("install", "--yes", "--no-install-recommends", "--download-only", "--target-release", suite, server); err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return "", err
	}
	for _, deb := range found {
		if err := m.do("dpkg-deb", "--extract", deb, root); err != nil {
			return "", err
		}
	}
	return program, wrap(program, root, filepath.Join(root, "usr", "bin", server))
}

// wrap writes a script that starts a program with the libraries of another root. Its process stays the one that was started.
func wrap(script, root, program string) error {
	var loader string
	var libs []string
	for _, pattern := range []string{"lib*/ld-linux*.so.*", "usr/lib*/ld-linux*.so.*", "lib/*/ld-linux*.so.*", "usr/lib/*/ld-linux*.so.*"} {
		if found, _ := filepath.Glob(filepath.Join(root, pattern)); len(found) > 0 {
			loader = found[0]
		}
	}
	for _, pattern := range []string{"lib/*-linux-gnu*", "usr/lib/*-linux-gnu*", "usr/lib/*-linux-gnu*/systemd"} {
		found, _ := filepath.Glob(filepath.Join(root, pattern))
		libs = append(libs, found...)
	}
	if loader == "" {
		return errors.New("it has no loader")
	}
	text := fmt.Sprintf("#!/bin/sh\nexec '%s' --library-path '%s' '%s' \"$@\"\n", loader, strings.Join(libs, ":"), program)
	return os.WriteFile(script, []byte(text), 0o755)
}

// do runs a command, whose error says what it printed at last.
func (m *matrix) do(name string, args ...string) error {
	out, err := m.command(".", name, args...).CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s: %w: %s", name, err, lines[len(lines)-1])
	}
	return nil
}
