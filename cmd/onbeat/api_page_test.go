package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// shown is a command of a page, and the output that the page shows for it.
type shown struct{ command, output string }

// story returns the commands of the page in their order. A line of a command that ends in a backslash goes on, and so does a
// loop of the shell, up to its end.
func story(text string) (list []shown) {
	for _, block := range blocks(text, "console") {
		for _, part := range strings.Split("\n"+block, "\n$ ")[1:] {
			lines := strings.Split(strings.TrimRight(part, "\n"), "\n")
			n := 1
			for strings.HasSuffix(lines[n-1], "\\") || strings.HasSuffix(lines[0], "; do") && lines[n-1] != "  done" {
				n++
			}
			list = append(list, shown{strings.Join(lines[:n], "\n"), strings.Join(lines[n:], "\n")})
		}
	}
	return list
}

// pattern returns what an output must match. A line that is … alone stands for lines, and … within a line for a part of it.
func pattern(output string) *regexp.Regexp {
	output = regexp.MustCompile(`\n +`).ReplaceAllString(output, "") // lines that are broken for the page
	var lines []string
	for line := range strings.SplitSeq(output, "\n") {
		if line == "…" {
			lines = append(lines, `(?s:.*?)`)
			continue
		}
		lines = append(lines, strings.ReplaceAll(regexp.QuoteMeta(line), "…", `.*?`))
	}
	return regexp.MustCompile(`\A` + strings.Join(lines, "\n") + `\s*\z`)
}

var changes = regexp.MustCompile(` -X | --json | > `)

// TestAPIPage_tellsAStoryThatHappens runs each command of docs/api-tour.md and docs/api.md, and compares the output. It repeats a command
// that only reads until the output is right: tasks take their time.
func TestAPIPage_tellsAStoryThatHappens(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		if os.Getenv("ONBEAT_REQUIRE_REAL") == "1" {
			t.Fatalf("ONBEAT_REQUIRE_REAL=1, and there is no %s on PATH", tool)
		}
		t.Skipf("there is no %s on PATH", tool)
	}
	text := readPage(t, "api-tour.md") + readPage(t, "api.md")
	steps := story(text)
	if len(steps) < 50 {
		t.Fatalf("the page shows %d commands: did its form change?", len(steps))
	}
	s, dir := newShell(t), t.TempDir()
	api := ""
	for _, step := range steps {
		if api == "" && strings.Contains(step.command, "$API") {
			api = s.serves(dir, blocks(text, "yaml")[0])
		}
		want, got := pattern(step.output), ""
		for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
			sh := exec.CommandContext(t.Context(), "sh", "-c", step.command)
			sh.Dir, sh.Env = dir, append(os.Environ(), "API="+api, "HOME="+dir, "no_proxy=*")
			out, err := sh.CombinedOutput()
			got = strings.ReplaceAll(string(out), "\r", "")
			timeout := sh.ProcessState.ExitCode() == 28 && strings.Contains(step.command, "--max-time")
			if want.MatchString(got) && (err == nil || timeout) {
				break
			}
			if changes.MatchString(step.command) || time.Now().After(end) {
				t.Fatalf("$ %s\n(%v) prints\n%s\nand the page says\n%s", step.command, err, got, step.output)
			}
		}
	}
}

// serves starts an instance with the config of a page, on a port that is free, and returns where its API is.
func (s *shell) serves(dir, text string) (url string) {
	s.Helper()
	for from, to := range map[string]string{"redis://127.0.0.1:6379/0": s.url, "namespace: shop": "namespace: " + s.ns, "127.0.0.1:8080": "127.0.0.1:0"} {
		if strings.Count(text, from) != 1 {
			s.Fatalf("the config of the page has not one %q", from)
		}
		text = strings.Replace(text, from, to, 1)
	}
	p := startProgram(s.T, dir, nil, "serve", "--config", put(s.T, filepath.Join(dir, "onbeat.yaml"), text))
	url = urlOfAPI(s.T, p)
	p.logs("leads")
	return url
}
