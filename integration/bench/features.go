package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/integration/internal/postgres"
	"github.com/onbeat/onbeat/internal/embedded"
	"github.com/onbeat/onbeat/task"
)

// features are the features that an operator may turn on. The first is no feature: the others are compared to it.
var features = []string{
	"nothing", "archive in SQLite", "archive in PostgreSQL", "metrics", "traces of 1 %", "traces of 100 %", "notifications", "a replica", "sealed payloads",
	"ten pages", everything,
}

// everything is all of them but the traces of 100 %, with the archive in PostgreSQL.
const everything = "all"

// has reports whether a feature is measured, by itself or with all.
func (p *params) has(feature string) bool {
	return p.Feature == feature || p.Feature == everything && feature != "archive in SQLite" && feature != "traces of 100 %"
}

var (
	// featuresAtOnce is F1: tasks that are due at one moment, as S2t.
	featuresAtOnce = &scenario{
		name: "F1", title: "What each feature costs, at full speed", aside: true, columns: []column{rate, serverCPU, clientCPU},
		plan: func(quick bool, peer string) []params {
			return planFeatures(peer, params{Tasks: sizes(quick, 50_000, 400_000)})
		},
		run: runFeature,
	}
	// featuresSteady is F2: tasks that are due at random milliseconds, as S3.
	featuresSteady = &scenario{
		name: "F2", title: "What each feature costs, at 1,000 tasks a second", aside: true, columns: []column{serverCPU, clientCPU},
		plan: func(quick bool, peer string) []params {
			return planFeatures(peer, params{Rate: 1000, Seconds: sizes(quick, 3, 10)})
		},
		run: runFeature,
	}
)

func planFeatures(peer string, w params) (list []params) {
	if peer != "onbeat" {
		return nil
	}
	w.Bytes, w.Concurrency = 64, 1000
	for _, w.Feature = range features {
		list = append(list, w)
	}
	return list
}

// runFeature adds tasks that are due soon, and measures the onbeat program while it runs them. Its surroundings, such as the open pages,
// are another process, and the archive and the replica are servers of their own: none of these is counted.
func runFeature(ctx context.Context, c *child, p peer) (err error) {
	w := &c.Params
	n := max(w.Tasks, w.Rate*w.Seconds)
	h, err := openHouse(ctx, c)
	defer func() { err = errors.Join(err, h.close()) }()
	if err != nil {
		return err
	}
	from := time.Now().Add(6*time.Second + time.Duration(n)*10*time.Microsecond).Truncate(time.Millisecond)
	random := rand.New(rand.NewPCG(uint64(c.Run), 42))
	if err := h.fill(ctx, n, func() time.Time {
		return from.Add(time.Duration(random.IntN(max(w.Seconds, 1)*1000)) * time.Millisecond * time.Duration(min(w.Seconds, 1)))
	}); err != nil {
		return err
	}
	if err := h.start(ctx); err != nil {
		return err
	}
	rest := time.Until(from.Add(-500 * time.Millisecond))
	if rest < 0 {
		return errors.New("adding the tasks took so long that they are due as soon as the program has started")
	}
	time.Sleep(rest)
	before, cpu := c.read(ctx), h.cpu()
	time.Sleep(time.Until(from.Add(time.Duration(w.Seconds) * time.Second)))
	if err := leaves(ctx, p, 0); err != nil {
		return err
	}
	c.metrics["tasks_per_s"] = float64(n) / time.Since(from).Seconds()
	if err := h.archived(); err != nil {
		return err
	}
	c.metrics["client_cpu_us_per_task"] = (h.cpu() - cpu) / float64(n)
	c.metrics["server_cpu_us_per_task"] = (c.read(ctx).cpu - before.cpu) / float64(n)
	counts, err := h.d.Admin().Activity.Counts(ctx)
	if err == nil && (counts.Finished != int64(n) || counts.Dead+counts.Retried > 0) {
		err = fmt.Errorf("of %d tasks %d ended well, %d are dead, %d were tried again", n, counts.Finished, counts.Dead, counts.Retried)
	}
	return err
}

// house is the onbeat program as an operator runs it, with the programs that it talks to.
type house struct {
	*child
	dir, api string
	sink     string // the URL that takes traces and notifications
	d        *onbeat.Dispatcher
	serve    *exec.Cmd
	env      []string
	ends     []func() error
}

const keyOfBench = "01234567890123456789012345678901" // it guards nothing

func openHouse(ctx context.Context, c *child) (h *house, err error) {
	h = &house{child: c}
	if h.dir, err = os.MkdirTemp("", "onbeat-bench-house-"); err != nil {
		return h, err
	}
	h.ends = append(h.ends, func() error { return os.RemoveAll(h.dir) })
	port, err := embedded.FreePort()
	if err != nil {
		return h, err
	}
	h.api = fmt.Sprintf("127.0.0.1:%d", port)
	if err := h.surround(ctx); err != nil {
		return h, err
	}
	config, err := h.config(ctx)
	if err != nil {
		return h, err
	}
	path := filepath.Join(h.dir, "onbeat.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return h, err
	}
	rdb, err := onbeat.Dial("redis://" + c.Redis)
	if err != nil {
		return h, err
	}
	h.ends = append(h.ends, rdb.Close)
	cfg := onbeat.Config{Namespace: namespace}
	if c.Params.has("sealed payloads") {
		cfg.Encryption.Keys = []task.EncryptionKey{{ID: "k", Secret: []byte(keyOfBench)}}
	}
	h.d, err = onbeat.New(rdb, cfg)
	h.serve = exec.Command(c.Program, "serve", "-c", path)
	h.serve.Env, h.serve.Stderr = append(os.Environ(), h.env...), os.Stderr
	return h, err
}

// config is the config of the program, with the feature.
func (h *house) config(ctx context.Context) (string, error) {
	w := &h.Params
	text := fmt.Sprintf("redis: {url: 'redis://%s'}\nnamespace: %s\nrelease: v1\nconcurrency: %d\nlog: {level: warn}\napi: {listen: '%s'}\n", h.Redis, namespace, w.Concurrency, h.api)
	archive := ""
	if w.has("archive in SQLite") {
		archive = "sqlite://" + filepath.Join(h.dir, "archive.db")
	}
	if w.has("archive in PostgreSQL") {
		s, err := postgres.Start(ctx)
		if err != nil {
			return "", err
		}
		h.ends = append(h.ends, func() error { s.Stop(); return nil })
		archive = s.URL
	}
	if archive != "" {
		text += "archive: {url: '" + archive + "'}\n"
	}
	if w.has("notifications") {
		text += "notify: [{name: ops, url: '${BENCH_SINK}'}]\n"
		h.env = append(h.env, "BENCH_SINK="+h.sink+"/notify")
	}
	if w.has("a replica") {
		_, port, _ := strings.Cut(h.Redis, ":")
		s, err := embedded.Start(ctx, embedded.Options{NoPassword: true, Args: []string{"--replicaof", "127.0.0.1", port}})
		if err != nil {
			return "", err
		}
		h.ends = append(h.ends, s.Close)
		text += "durability: {replicas: 1}\n"
	}
	if w.has("sealed payloads") {
		text += "encryption: {keys: [{id: k, key: '${BENCH_KEY}'}]}\n"
		h.env = append(h.env, "BENCH_KEY="+base64.StdEncoding.EncodeToString([]byte(keyOfBench)))
	}
	for _, of := range []struct{ feature, share string }{{"traces of 1 %", "0.01"}, {"traces of 100 %", "1"}} {
		if w.has(of.feature) {
			h.env = append(h.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+h.sink, "OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG="+of.share)
		}
	}
	return text, nil
}

// surround starts the process around the program.
func (h *house) surround(ctx context.Context) error {
	cmd := self(ctx, &job{Scenario: surrounding, Params: h.Params, API: "http://" + h.api})
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return err
	}
	h.ends = append(h.ends, func() error { return errors.Join(in.Close(), cmd.Wait()) })
	line, err := bufio.NewReader(out).ReadString('\n')
	h.sink = strings.TrimSpace(line)
	return err
}

// fill adds the tasks, for the handler that only waits: for no time.
func (h *house) fill(ctx context.Context, n int, due func() time.Time) error {
	list := make([]*task.Task, n)
	for i := range list {
		list[i] = task.New("sleep", append([]byte(`{"for":"0s"}`), strings.Repeat(" ", h.Params.Bytes-12)...))
		list[i].Due = due()
	}
	for part := range slices.Chunk(list, 10_000) {
		results, err := h.d.EnqueueAll(ctx, part)
		for _, r := range results {
			err = errors.Join(err, r.Err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// start starts the program, and returns once it is ready.
func (h *house) start(ctx context.Context) error {
	if err := h.serve.Start(); err != nil {
		return err
	}
	h.ends = append(h.ends, func() error { return errors.Join(h.serve.Process.Signal(syscall.SIGTERM), h.serve.Wait()) })
	return h.eventually(ctx, "/readyz", func(string) bool { return true })
}

// archived returns once the archive, if there is one, has all.
func (h *house) archived() error {
	if !h.Params.has("archive in SQLite") && !h.Params.has("archive in PostgreSQL") {
		return nil
	}
	return h.eventually(context.Background(), "/metrics", func(text string) bool { return strings.Contains(text, "\nonbeat_archive_behind_entries 0\n") })
}

// eventually asks the API until it answers well, with the wanted text.
func (h *house) eventually(ctx context.Context, path string, wanted func(string) bool) error {
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		text, err := fetch(ctx, "http://"+h.api+path)
		if err == nil && wanted(text) {
			return nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return fmt.Errorf("%s: not within %s: %w", path, patience, err)
		}
	}
}

// cpu is what the program has used so far, in µs.
func (h *house) cpu() float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.serve.Process.Pid))
	h.err = errors.Join(h.err, err)
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, err1 := strconv.ParseFloat(f[11], 64)
	system, err2 := strconv.ParseFloat(f[12], 64)
	h.err = errors.Join(h.err, err1, err2)
	return (user + system) * 1e6 / 100
}

// close ends all, the latest first.
func (h *house) close() (err error) {
	slices.Reverse(h.ends)
	for _, end := range h.ends {
		err = errors.Join(err, end())
	}
	return err
}

// fetch reads an answer of the API.
func fetch(ctx context.Context, url string) (string, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var b strings.Builder
	_, err = bufio.NewReader(resp.Body).WriteTo(&b)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return b.String(), err
}
