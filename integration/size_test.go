package integration

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/api"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// longestHold is how long one script or command may hold Redis. Redis measures by the wall, so beside other tests it is ten times that: all
// schedules in one call would take longer still.
func longestHold() time.Duration {
	if testredis.Soak() || os.Getenv("ONBEAT_SIZE") != "" {
		return 20 * time.Millisecond
	}
	return 200 * time.Millisecond
}

// In a namespace with many schedules, and ten times as many tasks that wait, nothing holds Redis for longer than longestHold, and each view
// answers. ONBEAT_SIZE says how many schedules; with it the test prints a table, with a column for each power of ten up to there.
func TestSize_nothingHoldsRedis(t *testing.T) {
	sizes := []int{10_000}
	if text := os.Getenv("ONBEAT_SIZE"); text != "" {
		most, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		for sizes = nil; most >= 1000; most /= 10 {
			sizes = append([]int{most}, sizes...)
		}
	} else {
		beside(t)
	}
	var stories []*sizeStory
	for _, n := range sizes {
		s := tellSize(t, n)
		for again := 0; again < 3 && len(s.holds()) > 0; again++ { // a machine that stood still is no fault of a script, and does not do it at the same step each time
			held := s.holds()
			s = tellSize(t, n)
			for i := range s.steps {
				if !slices.Contains(held, s.steps[i].name) {
					s.steps[i].held = 0
				}
			}
		}
		for _, step := range s.steps {
			if step.held > longestHold() {
				t.Errorf("%d schedules: %s: %s held Redis for %v", n, step.name, step.by, step.held)
			}
		}
		stories = append(stories, s)
	}
	if len(sizes) > 1 {
		printSizes(stories)
	}
}

// sizeStory is what a namespace of a size did.
type sizeStory struct {
	*testing.T
	n      int
	rdb    redis.UniversalClient
	ns     string
	steps  []sizeStep
	memory [2]int64 // bytes of Redis, after the schedules and after the tasks
}

// sizeStep is one step, how long it took, and the command that held Redis the longest meanwhile.
type sizeStep struct {
	name string
	took time.Duration
	held time.Duration
	by   string
}

func (s *sizeStory) holds() (names []string) {
	for _, step := range s.steps {
		if step.held > longestHold() {
			names = append(names, step.name)
		}
	}
	return names
}

// step does something, and looks what held Redis meanwhile.
func (s *sizeStory) step(name string, do func() error) {
	s.Helper()
	ctx := s.Context()
	if err := s.rdb.(*redis.Client).SlowLogReset(ctx).Err(); err != nil {
		s.Fatal(err)
	}
	began := time.Now()
	if err := do(); err != nil {
		s.Fatalf("%d schedules: %s: %v", s.n, name, err)
	}
	step := sizeStep{name: name, took: time.Since(began)}
	slow, err := s.rdb.(*redis.Client).SlowLogGet(ctx, 1000).Result()
	if err != nil {
		s.Fatal(err)
	}
	for _, x := range slow {
		if x.Duration > step.held {
			step.held, step.by = x.Duration, fmt.Sprintf("%.200q", x.Args[2:])
		}
	}
	s.steps = append(s.steps, step)
}

func tellSize(t *testing.T, n int) *sizeStory {
	t.Helper()
	srv := testredis.Private(t, "--slowlog-log-slower-than", strconv.FormatInt(longestHold().Microseconds(), 10), "--slowlog-max-len", "1000", "--save", "")
	rdb, err := onbeat.Dial(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	w := rig.On(t, srv.URL())
	w.Try("version") // builds the program
	s := &sizeStory{T: t, n: n, rdb: rdb, ns: w.NS}
	empty := s.used()
	first := s.instance("v1", s.schedules(0))
	s.step("first declared", first.knows)
	s.memory[0] = s.used() - empty
	s.step("ten times as many tasks added", func() error { return s.fill(first.d, 10*n) })
	s.memory[1] = s.used() - empty - s.memory[0]

	var second, third *sizeInstance
	s.step("a newer release leads", func() error { second = s.instance("v2", s.schedules(0)); return second.leads() })
	s.step("it knows all, unchanged", second.knows)
	first.stop()
	s.step("a newer release with 1 % changed", func() error { third = s.instance("v3", s.schedules(100)); return third.knows() })
	second.stop()

	for _, args := range [][]string{{"status"}, {"schedules", "list"}, {"tasks", "list"}, {"audit", "--since", "1h"}} {
		s.step("onbeat "+strings.Join(args, " "), func() error {
			if code, out, errs := w.Try(args...); code > 1 || out == "" {
				return fmt.Errorf("%d %.300s %.300s", code, out, errs)
			}
			return nil
		})
	}
	server, err := api.New(third.d.Admin(), api.Config{Namespace: s.ns})
	if err != nil {
		t.Fatal(err)
	}
	for _, view := range []string{
		"/v1/status", "/v1/counts", "/v1/instances", "/v1/summary?since=5m", "/v1/schedules?limit=100", "/v1/tasks?state=planned&limit=100",
		"/v1/failures", "/v1/events?limit=200",
	} {
		s.step("GET "+view, func() error {
			r, q := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+view, http.NoBody)
			q.RemoteAddr = "127.0.0.1:1" // without tokens only this machine is answered
			server.ServeHTTP(r, q)
			if r.Code != http.StatusOK {
				return fmt.Errorf("%d %.300s", r.Code, r.Body)
			}
			return nil
		})
	}
	server.Close()
	third.stop()
	if err := rdb.Close(); err != nil {
		t.Error(err)
	}
	srv.Stop()
	return s
}

// used is what Redis holds, in bytes.
func (s *sizeStory) used() int64 {
	s.Helper()
	text, err := s.rdb.Info(s.Context(), "memory").Result()
	if err != nil {
		s.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "used_memory:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}

// schedules are n schedules that are due once an hour, spread over its minutes. Every so many of them, if any, has another payload.
func (s *sizeStory) schedules(changed int) []onbeat.Schedule {
	list := make([]onbeat.Schedule, s.n)
	for i := range list {
		payload := `{"customer":` + strconv.Itoa(i) + `}`
		if changed > 0 && i%changed == 0 {
			payload = `{"customer":` + strconv.Itoa(i) + `,"changed":true}`
		}
		list[i] = onbeat.Schedule{Name: fmt.Sprintf("report-%07d", i), Rule: schedule.Cron(fmt.Sprintf("%d * * * *", i%60), time.UTC), Task: "report", Payload: []byte(payload)}
	}
	return list
}

func (s *sizeStory) fill(d *onbeat.Dispatcher, n int) error {
	due := time.Now().Add(30 * 24 * time.Hour)
	part := make([]*task.Task, 10_000)
	for at := 0; at < n; at += len(part) {
		for i := range part {
			part[i] = task.New("report", []byte(`{"customer":`+strconv.Itoa(at+i)+`}`), task.At(due.Add(time.Duration(at+i)*time.Millisecond)))
		}
		if _, err := d.EnqueueAll(s.Context(), part[:min(len(part), n-at)]); err != nil {
			return err
		}
	}
	return nil
}

// sizeInstance is an instance that runs in this process.
type sizeInstance struct {
	s       *sizeStory
	d       *onbeat.Dispatcher
	release string
	lines   chan string
	stop    func()
}

func (s *sizeStory) instance(release string, list []onbeat.Schedule) *sizeInstance {
	s.Helper()
	i := &sizeInstance{s: s, release: release, lines: make(chan string, 1000)}
	d, err := onbeat.New(s.rdb, onbeat.Config{Namespace: s.ns, Release: release, Log: zerolog.New(i)})
	if err != nil {
		s.Fatal(err)
	}
	i.d = d
	if err := d.Handle("report", handlers.Func(func(context.Context, *task.Task) error { return nil })); err != nil {
		s.Fatal(err)
	}
	if err := d.Declare(list); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	i.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	}
	return i
}

// Write is given what the instance logs.
func (i *sizeInstance) Write(line []byte) (int, error) {
	for _, message := range []string{"leads", "scheduling"} {
		if bytes.Contains(line, []byte(`"message":"`+message+`"`)) {
			i.lines <- message
		}
	}
	return len(line), nil
}

// leads waits until the instance leads, and knows until it knows the slots of all schedules.
func (i *sizeInstance) leads() error { return i.says("leads") }
func (i *sizeInstance) knows() error { return i.says("scheduling") }

func (i *sizeInstance) says(what string) error {
	for deadline := time.After(10 * time.Minute); ; {
		select {
		case message := <-i.lines:
			if message == what {
				return nil
			}
		case <-deadline:
			return fmt.Errorf("%s does not say %q", i.release, what)
		}
	}
}

// printSizes prints a table: a row for each step, a column for each size.
func printSizes(stories []*sizeStory) {
	row := func(name string, cell func(s *sizeStory) string) {
		fmt.Printf("| %s |", name)
		for _, s := range stories {
			fmt.Printf(" %s |", cell(s))
		}
		fmt.Println()
	}
	row("schedules", func(s *sizeStory) string { return strconv.Itoa(s.n) })
	fmt.Println("|---|" + strings.Repeat("---:|", len(stories)))
	row("bytes of Redis a schedule", func(s *sizeStory) string { return strconv.FormatInt(s.memory[0]/int64(s.n), 10) })
	row("bytes of Redis a task that waits", func(s *sizeStory) string { return strconv.FormatInt(s.memory[1]/int64(10*s.n), 10) })
	for i, step := range stories[0].steps {
		row(step.name, func(s *sizeStory) string {
			return fmt.Sprintf("%.3g ms", float64(s.steps[i].took)/float64(time.Millisecond))
		})
	}
}
