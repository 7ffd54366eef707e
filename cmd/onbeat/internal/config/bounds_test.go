package config

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/task"
)

// bomb is a list of ten aliases of a list of ten aliases, and so on.
func bomb(levels int, first, open, end string) string {
	var b strings.Builder
	b.WriteString("schedules:\n  - name: a\n    every: 1s\n    task: echo\n    payload:\n      a0: &a0 " + first + "\n")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, "      a%d: &a%d %s%s%s\n", i, i, open, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","), end)
	}
	return b.String()
}

func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// hostileConfigs are small files that ask for much. Each has a size that the parser took seconds or more for, or all memory.
func hostileConfigs() []struct{ name, yaml, want string } {
	return []struct{ name, yaml, want string }{
		{"aliases of aliases", bomb(9, "x", "[", "]"), "x.yaml:12: more than 500000 values or 64 MiB of text after its aliases are expanded"},
		{"merges of merges", bomb(9, "{b: x}", "{<<: [", "]}"), "x.yaml:12: more than 500000 values"},
		{"aliases of a long text", bomb(5, strings.Repeat("x", 10_000), "[", "]"), "x.yaml:10: more than 500000 values or 64 MiB"},
		{"an alias of itself", "queues: {}\nlimits: &a {b: *a}\n", "x.yaml:2: the alias *a refers to itself (write the value out"},
		{"a list of itself", "schedules:\n  - name: a\n    every: 1s\n    task: echo\n    payload: &a [1, *a]\n", "x.yaml:5: the alias *a refers to itself"},
		{"an anchor named twice", "limits: {a: &a 1}\nqueues: &a {b: *a}\n", "x.yaml:2: the alias *a refers to itself"},
		{"an alias of nothing", "namespace: x\nconcurrency: *a\n", "x.yaml:2: the alias *a has no anchor (define &a"},
		{"many keys", "queues:\n" + lines(100_000, "  k%d: 1\n"), "x.yaml:10002: more than 10000 keys in a mapping"},
		{"many keys in braces", "queues: {\n" + lines(100_000, "  k%d: 1,\n") + "}\n", ""},
		{"many keys with anchors", "queues:\n" + lines(100_000, "  &a%[1]d k%[1]d: 1\n"), "x.yaml:10002: more than 10000 keys"},
		{"many keys, asked for", "queues:\n" + lines(50_000, "  ? k%d\n  : 1\n"), "x.yaml:20002: more than 10000 keys"},
		{"many mappings of many keys", lines(50, "m%d:\n"+strings.ReplaceAll(lines(3000, "  k%d: 1\n"), "%", "%%")), "x.yaml:"},
		{"a list of mappings of many keys", "a:\n" + strings.Repeat("- "+strings.TrimPrefix(lines(5000, "  k%d: 1\n"), "  "), 20), "x.yaml:"},
		{"many values", "a:\n" + strings.Repeat("  - 1\n", 400_000), "x.yaml:250001: more than 500000 YAML tokens"},
		{"many empty values", "a:\n" + strings.Repeat("  - \n", 200_000), "too many empty values"},
		{"many empty keys", "a:\n" + strings.Repeat("  - k:\n", 100_000), "too many empty values"},
		{"a deep list", "a: " + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000), "x.yaml:1: more than 100 nested lists and mappings"},
		{"a deep mapping", "a: " + strings.Repeat("{a: ", 200_000), "x.yaml:1: more than 100 nested lists"},
		{"a deep list in lines", "a: \n" + strings.Repeat("- ", 200_000) + "a", "x.yaml:2: more than 100 nested lists"},
		{"a deep mapping in lines", func() string {
			var b strings.Builder
			for i := range 1000 {
				b.WriteString(strings.Repeat(" ", i) + "a:\n")
			}
			return b.String()
		}(), "x.yaml:101: more than 100 nested lists"},
		{"many tags", "a: " + strings.Repeat("!x ", 200_000) + "a", "x.yaml:1: more than 100"},
		{"many anchors", "a: " + strings.Repeat("&x ", 200_000) + "a", "x.yaml:1: "},
		{"long keys", func() string {
			var b strings.Builder
			for i := range 50 {
				b.WriteString(strings.Repeat(" ", i) + strings.Repeat("k", 20_000) + ":\n")
			}
			return b.String() + lines(1000, strings.Repeat(" ", 50)+"k%d: 1\n")
		}(), "too many values under long keys"},
		{"blank lines in a text", "a: |\n  x\n" + strings.Repeat("\n", 60_000) + "b: 1\n", "too many blank lines in a row"},
		{"a huge file", "# " + strings.Repeat("x", 17<<20), "x.yaml: larger than 16 MiB"},
	}
}

// largeConfigs are as large as the bounds let them be.
func largeConfigs() []struct{ name, yaml string } {
	return []struct{ name, yaml string }{
		{"aliases", bomb(5, "x", "[", "]")},
		{"merges", bomb(4, "{b: x}", "{<<: [", "]}")},
		{"a list", "a:\n" + strings.Repeat("  - 1\n", 240_000)},
		{"empty values", "a:\n" + strings.Repeat("  - \n", 60_000)},
		{"keys", "queues:\n" + lines(9_999, "  k%d: 1\n") + "limits:\n" + lines(9_900, "  k%d: 1\n")},
		{"keys in braces", "queues: {" + lines(120_000, "k%d: 1, ") + "}\n"},
		{"mappings", "a:\n" + strings.Repeat("  - {a: 1, b: [x]}\n", 38_000)},
		{"mappings in lines", "a:\n" + strings.Repeat("  - a: 1\n    b:\n      - x\n", 50_000)},
		{"schedules", "schedules:\n" + lines(18_000, "  - name: s%d\n    every: 1s\n    task: echo\n    payload: {a: 1, b: 2}\n    queue: low\n")},
		{"schedules of one anchor", "schedules:\n  - &a {name: s, every: 1s, task: echo}\n" + lines(20_000, "  - {<<: *a, name: s%d}\n")},
		{"depth", "a: " + strings.Repeat("[", 98) + strings.Repeat("]", 98) + "\n"},
		{"blank lines", "a: |\n  x\n" + strings.Repeat("\n", 1990) + "  y\n"},
		{"long text", "a: \"" + strings.Repeat("\\u0041 ", 2<<20) + "\"\n"},
		{"comments", strings.Repeat("# a\n", 400_000) + "a: 1\n"},
	}
}

func TestConfig_isReadInTimeUpToItsBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	skipRaced(t)
	for _, c := range largeConfigs() {
		within(t, c.name, 30*time.Second, 3000, func() {
			f, err := parseDocument("x.yaml", []byte(c.yaml))
			if err != nil {
				t.Errorf("%s: %.300v", c.name, err)
				return
			}
			var c settings
			var v any
			_, _ = f.decode(&c), f.decode(&v) // the names of the fields do not matter
		})
	}
}

// skipRaced leaves a test of one goroutine's work to the run without the race detector, which takes a tenth of the time.
func skipRaced(t *testing.T) {
	t.Helper()
	if raced {
		t.Skip("make test runs this without the race detector")
	}
}

// within runs a function that must not take long, nor much memory. On an idle machine each takes less than two seconds. Without its
// bound, each takes many minutes, or all memory.
func within(t *testing.T, name string, limit time.Duration, megabytes uint64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	f()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	if took > time.Second {
		t.Logf("%s: took %v", name, took)
	}
	if took > limit {
		t.Errorf("%s: took %v, more than %v", name, took, limit)
	}
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > megabytes {
		t.Errorf("%s: allocated %d MiB, more than %d", name, used, megabytes)
	}
}

// It does not run beside others: it counts what is allocated.
func TestConfig_isBounded(t *testing.T) {
	skipRaced(t)
	for _, c := range hostileConfigs() {
		within(t, c.name, 15*time.Second, 1500, func() {
			_, err := checked("x.yaml", c.yaml, testEnv())
			switch {
			case err == nil && c.want != "":
				t.Errorf("%s: accepted", c.name)
			case err == nil:
			case !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 400:
				t.Errorf("%s:\n got %.400s\nwant %s", c.name, err, c.want)
			case !errors.Is(err, task.ErrInvalid):
				t.Errorf("%s: does not match ErrInvalid: %v", c.name, err)
			}
		})
	}
}

func TestConfig_mayBeLarge(t *testing.T) {
	t.Parallel()
	n := 10_000
	if raced {
		n = 1_000
	}
	text := "namespace: x\nschedules:\n" + lines(n, "  - name: s%d\n    every: 1s\n    task: echo\n    payload: {a: [1, 2, 3], b: ~}\n")
	c, err := checked("x.yaml", text, testEnv())
	if err != nil || len(c.Schedules) != n {
		t.Errorf("%v", err)
	}
	text = "payload_limit: 4000000\nschedules:\n" + lines(10, "  - {name: s%d, every: 1s, task: echo, payload: *p}\n")
	text = strings.Replace(text, "*p", "&p \""+strings.Repeat("x", 3_000_000)+"\"", 1)
	if c, err = checked("x.yaml", text, testEnv()); err != nil || len(c.Schedules) != 10 || len(c.Schedules[9].Payload) != 3_000_002 {
		t.Errorf("a long text with aliases: %.300v", err)
	}
}
