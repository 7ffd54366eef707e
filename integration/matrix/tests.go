package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// command prepares a command in a folder of the repository.
func (m *matrix) command(folder, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(m.ctx, name, args...)
	c.Dir = filepath.Join(m.root, folder)
	c.Env = append(os.Environ(), "ONBEAT_REQUIRE_REAL=1", "ONBEAT_TEST_ON=child", "ONBEAT_TEST_REDIS=")
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	return c
}

// test returns the test program of a folder, compiled once.
func (m *matrix) test(folder string) (string, error) {
	if path := m.tests[folder]; path != "" {
		return path, nil
	}
	path := filepath.Join(m.work, "tests", strings.ReplaceAll(folder, "/", "_")+".test")
	if out, err := m.command(folder, "go", "test", "-c", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	m.tests[folder] = path
	return path, nil
}

// runSet runs the tests of a column with the programs of bin before all others on PATH.
func (m *matrix) runSet(row string, s set, bin string) string {
	for _, p := range s.parts {
		if cell := m.runPart(row, p, bin); cell != holds {
			return cell
		}
	}
	return holds
}

func (m *matrix) runPart(row string, p part, bin string) string {
	program, err := m.test(p.folder)
	if err != nil {
		return m.fail(row, p, err.Error())
	}
	c := m.command(p.folder, program, "-test.v", "-test.run", p.run, "-test.timeout", "10m", "-test.parallel", "4")
	if p.run == "." {
		c.Args = append(c.Args, "-test.short")
	}
	c.Env = append(c.Env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	return m.verdict(row, p, out, err)
}

var skipped = regexp.MustCompile(`(?m)^--- SKIP: (\S+)`)

// verdict reads what tests print. A test that was skipped has shown nothing.
func (m *matrix) verdict(row string, p part, out []byte, err error) string {
	switch skip := skipped.FindSubmatch(out); {
	case err != nil:
		return m.fail(row, p, fmt.Sprintf("%v\n%s", err, out))
	case skip != nil && p.run != ".":
		return notRun + string(skip[1]) + " was skipped"
	case !bytes.Contains(out, []byte("--- PASS")):
		return m.fail(row, p, "no test ran")
	}
	return holds
}

// fail keeps what failed in a file, and returns the cell.
func (m *matrix) fail(row string, p part, what string) string {
	path := filepath.Join(m.work, strings.NewReplacer("/", "_", " ", "_").Replace(row+" "+p.folder)+".log")
	if err := os.WriteFile(path, []byte(what), 0o644); err != nil {
		fmt.Fprintln(m.out, err)
	}
	fmt.Fprintln(m.out, "see", path)
	return fails + ": " + p.folder
}
