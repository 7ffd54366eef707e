package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/conformance"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// With these, a test asks the program that it starts to run fewer scenarios, or to break a promise.
const (
	tryOnly   = "CONFORMANCE_ONLY"
	breakThis = "CONFORMANCE_BREAK"
)

func init() {
	conformanceHook = func(o *conformance.Options) {
		if only := os.Getenv(tryOnly); only != "" {
			o.Only = []string{only}
		}
		o.Receive = map[string]func([]trial.Arrival) []trial.Arrival{
			"drop":  func(l []trial.Arrival) []trial.Arrival { return slices.Delete(l, 5, 6) },
			"twice": func(l []trial.Arrival) []trial.Arrival { return append(l, l[5]) },
		}[os.Getenv(breakThis)]
	}
}

const quickest = "everything stopped and started"

// trialOf starts onbeat conformance on a Redis of its own, which also holds a foreign key.
func trialOf(t *testing.T, env []string, args ...string) (*program, *redis.Client, string) {
	t.Helper()
	srv := testredis.Private(t)
	rdb := srv.Client()
	if err := rdb.Set(t.Context(), "mine", "1", 0).Err(); err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	env = append(env, "TMPDIR="+temp)
	return startProgram(t, t.TempDir(), env, append([]string{"conformance", "--redis", srv.URL()}, args...)...), rdb, temp
}

// wantOnlyMine checks that the program left no keys, files or processes, and that the foreign key is still there.
func wantOnlyMine(t *testing.T, rdb *redis.Client, temp string) {
	t.Helper()
	if keys, err := rdb.Keys(t.Context(), "*").Result(); err != nil || !slices.Equal(keys, []string{"mine"}) {
		t.Errorf("keys %q, %v; want only what was there before", keys, err)
	}
	wantNothingLeft(t, temp)
}

func reportOf(t *testing.T, p *program) (r conformance.Report) {
	t.Helper()
	if err := json.Unmarshal([]byte(p.out.String()), &r); err != nil {
		t.Fatalf("%v in %q", err, p.out.String())
	}
	return r
}

func TestConformance_findsEveryPromiseKeptAndTouchesNothingElse(t *testing.T) {
	t.Parallel()
	// The others freeze and cut off a leader for longer than its lease of two seconds, and so want a free core. The tests of integration do the
	// same with longer leases.
	only, scenarios := []string{tryOnly + "=rolling updates"}, 1
	if testredis.Soak() {
		only, scenarios = nil, 7
	}
	p, rdb, temp := trialOf(t, only, "--rollouts", "3", "--json")
	code := p.exit(3 * time.Minute)
	r := reportOf(t, p)
	if code != exitFine || !r.OK || len(r.Scenarios) != scenarios {
		t.Errorf("exit %d, ok %v, %d scenarios", code, r.OK, len(r.Scenarios))
	}
	for _, s := range r.Scenarios {
		if s.Skipped != "" || s.Slots < 100 || s.Missed+s.Duplicated+s.Early+s.OffGrid+s.Older > 0 || !s.Audit {
			t.Errorf("%+v", s)
		}
		t.Logf("%-31s %4d slots in %4.1f s, gap %.0f ms, lag p50 %.1f, p99 %.1f ms, %d repeated, %d by policy",
			s.Scenario, s.Slots, s.Seconds, s.Gap, s.P50, s.P99, s.Repeated, s.ByPolicy)
	}
	stats, err := rdb.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"flushall", "flushdb", "swapdb", "config|set", "config|rewrite", "debug", "shutdown", "failover", "replicaof", "slaveof", "client|kill",
		"client|pause", "script|flush", "script|kill", "keys", "scan", "save", "bgsave", "bgrewriteaof",
	} {
		if strings.Contains(stats, "cmdstat_"+bad+":") || strings.Contains(stats, "cmdstat_"+bad+"|") {
			t.Errorf("it sent %s", strings.ToUpper(strings.ReplaceAll(bad, "|", " ")))
		}
	}
	wantOnlyMine(t, rdb, temp)
}

func TestConformance_exits1WhenAPromiseBreaks(t *testing.T) {
	t.Parallel()
	for fault, says := range map[string]string{"drop": `\d+ +[1-9]`, "twice": `\d+ +\d+ +[1-9]`} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			p, rdb, temp := trialOf(t, []string{tryOnly + "=" + quickest, breakThis + "=" + fault})
			if code := p.exit(time.Minute); code != exitFailed {
				t.Errorf("exit %d, want %d", code, exitFailed)
			}
			for _, want := range []string{quickest + " +" + says, "✗ A promise broke"} { // the table counts slots, missed and duplicated
				if !regexp.MustCompile(want).MatchString(p.out.String()) {
					t.Errorf("it does not say %q", want)
				}
			}
			if !strings.Contains(p.errs.String(), `"message":"leads"`) {
				t.Error("what the instances logged is not shown")
			}
			wantOnlyMine(t, rdb, temp)
		})
	}
}

func TestConformance_takesEverythingAwayWhenInterrupted(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{os.Interrupt, hangup} { // ^C, and a terminal that is closed
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p, rdb, temp := trialOf(t, nil)
			p.says("1/7 rolling updates")
			testredis.Eventually(t, patience, func() bool {
				n, err := rdb.DBSize(t.Context()).Result()
				return err == nil && n > 5
			}, "no key of it is in Redis: the test sees nothing")
			if err := p.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if code := p.exit(20 * time.Second); code != exitFailed {
				t.Errorf("exit %d, want %d", code, exitFailed)
			}
			if text := p.errs.String(); !strings.Contains(text, "interrupted") || strings.Count(text, "\n") != 1 {
				t.Errorf("stderr = %q, want one line", text)
			}
			wantOnlyMine(t, rdb, temp)
		})
	}
}

// expiring returns the keys of scratch namespaces that expire, and the error of one that does not.
func expiring(t *testing.T, rdb *redis.Client) (expire map[string]bool, err error) {
	t.Helper()
	expire = map[string]bool{}
	keys, err := rdb.Keys(t.Context(), "onbeat:*").Result()
	for _, key := range keys {
		left, e := rdb.PTTL(t.Context(), key).Result()
		if e != nil || left == -1 || left > conformance.KeysLive {
			err = fmt.Errorf("%s lives for %s: %w", key, left, e)
			continue
		}
		expire[key] = true
	}
	return expire, err
}

// newAgain matches keys that may be newer than the last call of expire. The keys of waiting and running tasks go with the last task and
// come again with the next, and so does the key watch.
var newAgain = regexp.MustCompile(`:(watch|tasks|active|held|due:.*|running:.*)$`)

func TestConformance_leavesNothingForLongWhenKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends the instances with the process that started them")
	}
	p, rdb, temp := trialOf(t, []string{tryOnly + "=leader killed"})
	var before map[string]bool
	testredis.Eventually(t, patience, func() (err error) {
		if before, err = expiring(t, rdb); len(before) < 10 {
			return fmt.Errorf("%d keys expire: %w", len(before), err)
		}
		return nil
	}, "the keys do not expire")
	_ = p.Process.Kill()
	p.exit(10 * time.Second)
	testredis.Eventually(t, 30*time.Second, func() bool { return len(childrenWith(t, temp)) == 0 }, "its instances live on")
	after, err := expiring(t, rdb)
	for key := range before { // a key that came in between is newer than the last call of expire
		left, e := rdb.Exists(t.Context(), key).Result()
		if left > 0 && !after[key] && !newAgain.MatchString(key) {
			t.Errorf("%s does not expire any more: %v, %v", key, err, e)
		}
	}
}

func TestConformance_saysWhyItCannotTry(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, c := range []struct {
		args string
		code int
		part string
	}{
		{"--rollouts 0", exitAsked, `rollouts "0"`},
		{"--rollouts 1001", exitAsked, `rollouts "1001"`},
		{"--namespace shop", exitAsked, `namespace "shop"`},
		{"--redis redis://127.0.0.1:1", exitFailed, "127.0.0.1:1"},
	} {
		r := runWith(t.Context(), testEnv(), "", append([]string{"conformance", "--redis", s.url}, strings.Fields(c.args)...)...)
		s.failed(r, c.code, c.args, c.part)
		if r.out != "" {
			t.Errorf("%v: it printed %q", c.args, r.out)
		}
	}
}

func TestConformance_saysWhatRedisDenies(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	rdb := srv.Client()
	user := func(name string, rules ...any) string {
		t.Helper()
		args := append([]any{"ACL", "SETUSER", name, "on", ">pw", "&*"}, rules...)
		if err := rdb.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
		return "redis://" + name + ":pw@" + srv.Addr()
	}
	elsewhere := user("elsewhere", "~shop:*", "+@all")
	s := &shell{T: t}
	s.failed(runWith(t.Context(), testEnv(), "", "conformance", "--json", "--redis", elsewhere), exitFailed, "other keys", "denies access")

	flushless := user("flushless", "~onbeat:*", "+@all", "-script|flush")
	p := startProgram(t, t.TempDir(), []string{tryOnly + "=a client that floods"}, "conformance", "--json", "--script-flush", "--redis", flushless)
	code := p.exit(patience)
	if r := reportOf(t, p); code != exitFine || !strings.Contains(r.Scenarios[0].Note, "without SCRIPT FLUSH: redis denies access") || r.Scenarios[0].Tasks != 2000 {
		t.Errorf("exit %d, %+v", code, r.Scenarios[0])
	}

	p = startProgram(t, t.TempDir(), []string{tryOnly + "=a client that floods"}, "conformance", "--json", "--script-flush", "--redis", srv.URL())
	code = p.exit(patience)
	if r := reportOf(t, p); code != exitFine || r.Scenarios[0].Note != "with SCRIPT FLUSH under load" {
		t.Errorf("exit %d, %+v", code, r.Scenarios[0])
	}
}

func TestConformance_saysThatRedisWentAway(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	temp := t.TempDir()
	p := startProgram(t, t.TempDir(), []string{"TMPDIR=" + temp}, "conformance", "--redis", srv.URL())
	testredis.Eventually(t, patience, func() bool {
		n, err := srv.Client().DBSize(t.Context()).Result()
		return err == nil && n > 5
	}, "it does not begin")
	srv.Kill()
	if code := p.exit(90 * time.Second); code != exitFailed {
		t.Errorf("exit %d, want %d", code, exitFailed)
	}
	if text := p.errs.String(); !strings.Contains(text, "unreachable") || strings.Count(text, "\n") != 1 {
		t.Errorf("stderr = %q, want one line", text)
	}
	wantNothingLeft(t, temp)
}
