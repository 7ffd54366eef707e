package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", strconv.Itoa(max(6, runtime.GOMAXPROCS(0)))) // they wait for servers and programs more than they compute
	testredis.Main(m)
}

// shell runs commands in a namespace of its own on the shared Redis.
type shell struct {
	*testing.T
	ns, url string
	rdb     *redis.Client
}

func newShell(t *testing.T) *shell {
	t.Helper()
	return &shell{T: t, ns: testredis.Namespace(t), url: testredis.URL(t), rdb: testredis.Client(t)}
}

// env returns the environment of a command.
func (s *shell) env(more ...string) func(string) string {
	return testEnv(append(more, "ONBEAT_REDIS_URL", s.url, "ONBEAT_NAMESPACE", s.ns)...)
}

type ran struct {
	code     int
	out, err string
}

func (s *shell) run(stdin string, args ...string) ran {
	s.Helper()
	return runWith(s.Context(), s.env(), stdin, args...)
}

func runWith(ctx context.Context, env func(string) string, stdin string, args ...string) ran {
	var out, errs bytes.Buffer
	code := run(ctx, args, env, strings.NewReader(stdin), &out, &errs)
	return ran{code, out.String(), unattended.ReplaceAllString(errs.String(), "")}
}

// unattended is what a command that adds tasks notes in most tests: nothing runs them.
var unattended = regexp.MustCompile(`(?m)^onbeat: note: no instance runs: .*\n`)

// must runs a command that must succeed, and returns its output.
func (s *shell) must(args ...string) string {
	s.Helper()
	r := s.run("", args...)
	if r.code != 0 {
		s.Fatalf("onbeat %v: exit %d: %s", args, r.code, r.err)
	}
	if r.err != "" {
		s.Errorf("onbeat %v: said on stderr: %s", args, r.err)
	}
	return r.out
}

// json runs a command with --json that must succeed, and decodes its output.
func (s *shell) json(v any, args ...string) {
	s.Helper()
	out := s.must(append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), v); err != nil {
		s.Fatalf("onbeat %v: %v in %s", args, err, out)
	}
}

// fails runs a command that must fail with this code and one line on stderr. The line must have all the parts.
func (s *shell) fails(code int, args []string, parts ...string) {
	s.Helper()
	s.failed(s.run("", args...), code, args, parts...)
}

func (s *shell) failed(r ran, code int, what any, parts ...string) {
	s.Helper()
	if r.code != code {
		s.Errorf("%v: exit %d, want %d: %s%s", what, r.code, code, r.out, r.err)
	}
	if strings.Count(r.err, "\n") != 1 || !strings.HasPrefix(r.err, "onbeat: ") {
		s.Errorf("%v: stderr is not one line: %q", what, r.err)
	}
	for _, p := range parts {
		if !strings.Contains(r.err, p) {
			s.Errorf("%v: stderr %q does not say %q", what, r.err, p)
		}
	}
}

// nothingWritten checks that Redis holds no key of the namespace.
func (s *shell) nothingWritten() {
	s.Helper()
	keys, err := s.rdb.Keys(s.Context(), "*"+s.ns+"*").Result()
	if err != nil {
		s.Fatal(err)
	}
	if len(keys) > 0 {
		s.Errorf("something was written: %v", keys)
	}
}

// cells returns the words of the table row whose first cell is name.
func cells(table, name string) []string {
	for line := range strings.SplitSeq(table, "\n") {
		if f := strings.Fields(line); len(f) > 0 && f[0] == name {
			return f
		}
	}
	return nil
}

// testEnv is an environment of names and values.
func testEnv(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}
