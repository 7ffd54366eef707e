package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/conformance"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/trial"
	"github.com/onbeat/onbeat/schedule"
)

type conformanceCmd struct {
	Rollouts    string `default:"10" placeholder:"N" help:"How many rolling updates to try (default ${default}), and half as many with three replicas."`
	ScriptFlush bool   `help:"Also flush the script cache of Redis under load. All users of that Redis share the cache: a program that does not load its scripts again fails."`
}

// Help is shown by onbeat conformance --help.
func (c *conformanceCmd) Help() string {
	return "Runs rollouts and faults against your own Redis, with real instances of this program: rolling updates of one and of " +
		"three replicas; a leader that is killed, frozen or cut off from Redis; a stop and start of all instances; a client that " +
		"floods. An HTTP receiver here and onbeat audit both judge each slot, and they must agree. Exits with 1 if a promise " +
		"broke.\n\n" +
		"It works in namespaces with random names and removes them, also on ^C or when the terminal closes. If it is killed, " +
		"Redis removes them after ten minutes. It flushes nothing, changes no setting, and disturbs no connection but its own. It " +
		"runs about 100 tasks a second and, once, 2,000. It does not kill your Redis: if you like, trigger a failover while it " +
		"runs. If Redis loses writes in the failover, the report shows what that cost."
}

// Run is called when the command is given.
func (c *conformanceCmd) Run(ctx context.Context, a *app) error {
	n, err := strconv.Atoi(c.Rollouts)
	if err != nil || n < 1 || n > conformance.MaxRollouts {
		return refuse("rollouts", c.Rollouts, "not a number of rollouts", fmt.Sprintf("1 to %d", conformance.MaxRollouts))
	}
	if a.Namespace != "" {
		return refuse("namespace", a.Namespace, "conformance makes its own namespaces", "leave it out: conformance picks random names, and removes the namespaces at the end")
	}
	a.Namespace = "conformance" // target needs a namespace; the suite makes its own
	t, err := a.redisTarget()
	if err != nil {
		return err
	}
	client, err := a.connectTo(ctx, t) // if Redis does not answer, the user learns it at once
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, stop := untilNobodyLooks(ctx)
	defer stop()
	show := &conformanceShow{a: a, bar: a.progress(), began: time.Now()}
	if !a.JSON {
		a.printf("This takes about %s on %s, at about 100 tasks a second, in namespaces conformance-… that it removes at the end",
			conformance.Estimate(n).Round(5*time.Second), secret.URL(t.url))
	}
	opts := conformance.Options{
		URL: t.url, Rollouts: n, FlushScripts: c.ScriptFlush, Watch: show.see,
		Open: func(namespace string) (*conformance.Scratch, error) { return openScratch(t, namespace) },
	}
	conformanceHook(&opts)
	report, err := conformance.Run(ctx, opts)
	show.bar.clear()
	if err != nil {
		return conformanceFailed(err, t)
	}
	if a.JSON {
		err = a.printJSON(report)
	} else {
		show.report(report)
	}
	if err == nil && !report.OK {
		return errSaid
	}
	return err
}

// untilNobodyLooks returns a context that also ends when the terminal closes, or the reader of the output leaves. The suite
// then has to remove its namespaces, too.
func untilNobodyLooks(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, hangup, syscall.SIGPIPE)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}

// conformanceHook lets tests run fewer scenarios, and break a promise.
var conformanceHook = func(*conformance.Options) {}

// conformanceFailed explains why the suite could not go on.
func conformanceFailed(err error, t target) error {
	switch {
	case errors.Is(err, conformance.ErrUnsupported):
		return &failure{err, "run it on Linux or macOS"}
	case errors.Is(err, conformance.ErrLeft):
		return &failure{fmt.Errorf("%s: %w", secret.URL(t.url), err), "Redis removes its keys within " + schedule.FormatDuration(conformance.KeysLive)}
	case errors.Is(err, context.Canceled):
		return err
	case store.Retryable(err):
		return &failure{fmt.Errorf("%s: %w", secret.URL(t.url), err), "no slot was judged: Redis has to stay reachable while the suite runs"}
	}
	return fmt.Errorf("%s: %w", secret.URL(t.url), err)
}

// barWidth fits a terminal of 80 columns: the progress line cannot overwrite a line that wraps.
const barWidth = 79

// conformanceShow shows how far the suite has come, and what it found.
type conformanceShow struct {
	a     *app
	bar   *progress
	began time.Time
	told  int // the scenario that was announced last
}

// see shows a new status of the suite.
func (s *conformanceShow) see(now conformance.Status) {
	line := fmt.Sprintf("%3.0fs  %d/%d  %d arrived  %s: %s", time.Since(s.began).Seconds(), now.Number, now.Of, now.Arrived, now.Scenario, now.Act)
	if len(line) > barWidth {
		line = line[:barWidth-3] + "..."
	}
	s.bar.say("%s", line)
	if now.Number > s.told && !s.a.JSON && !isTerminal(s.a.err) {
		s.told = now.Number
		s.a.printf("%d/%d %s", now.Number, now.Of, now.Scenario)
	}
}

// report prints the table, and below it the details that the table has no room for.
func (s *conformanceShow) report(r *conformance.Report) {
	a := s.a
	t := a.table("SCENARIO", "SLOTS", "MISSED", "DUPLICATED", "EARLY", "OFF GRID", "GAP", "LAG p50", "LAG p99", "AUDIT", "")
	for _, x := range r.Scenarios {
		if x.Skipped != "" {
			t.add(x.Scenario, "-", "-", "-", "-", "-", "-", "-", "-", "-", cell{"skipped", a.style.yellow})
			continue
		}
		verdict, agrees := cell{"✓", a.style.green}, cell{text: "agrees"}
		if !x.OK {
			verdict = cell{"✗", a.style.red}
		}
		if !x.Audit {
			agrees = cell{"differs", a.style.red}
		}
		t.add(x.Scenario, strconv.Itoa(x.Slots), s.bad(x.Missed), s.bad(x.Duplicated), s.bad(x.Early), s.bad(x.OffGrid),
			lagMillis(x.Gap), lagMillis(x.P50), lagMillis(x.P99), agrees, verdict)
	}
	a.printf("")
	t.print(a.out)
	for _, x := range r.Scenarios {
		s.details(x)
	}
	if r.OK {
		a.printf("\n%s", a.style.green(fmt.Sprintf("✓ No promise broke in %.0f s.", r.Seconds)))
		return
	}
	a.printf("\n%s", a.style.red("✗ A promise broke."))
}

func (s *conformanceShow) bad(n int) cell {
	if n == 0 {
		return cell{text: "0"}
	}
	return cell{strconv.Itoa(n), s.a.style.red}
}

func lagMillis(ms float64) string {
	if ms >= 1000 {
		return fmt.Sprintf("%.2f s", ms/1000)
	}
	return fmt.Sprintf("%.1f ms", ms)
}

func (s *conformanceShow) details(x *trial.Result) {
	var lines []string
	add := func(n int, text string) {
		if n > 0 {
			lines = append(lines, fmt.Sprintf("%d %s", n, text))
		}
	}
	add(x.ByPolicy, "slots were dropped by the policy of the schedules (missed: once) while no instance ran")
	add(x.Repeated, "ran again as the next attempt: the instance that ran it was lost before it could report the result")
	add(x.Tasks, "tasks were enqueued beside the schedules, each to arrive once")
	if x.LedAfter > 0 {
		lines = append(lines, fmt.Sprintf("another instance led %s after the leader was lost", lagMillis(x.LedAfter)))
	}
	if more := strings.TrimSpace(x.Skipped + x.Note); more != "" {
		lines = append(lines, more)
	}
	for _, w := range x.Wrong {
		lines = append(lines, s.a.style.red("✗ "+w))
	}
	if len(lines) == 0 {
		return
	}
	s.a.printf("\n%s", s.a.style.bold(x.Scenario))
	for _, line := range lines {
		s.a.printf("  %s", line)
	}
	for _, line := range x.Logs {
		fmt.Fprintln(s.a.err, line)
	}
}
