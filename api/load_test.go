package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// The environment of the load test: how long each of its parts lasts, and where the process that makes the load sends it.
const (
	loadTime = "ONBEAT_TEST_LOAD"
	loadURL  = "ONBEAT_TEST_LOAD_URL"
	loadRate = 2_000 // requests a second
)

// A dispatcher runs a schedule each 100 ms, first alone, then beside 2,000 requests a second to its API: reads, tasks that are added,
// eight streams of events. The test prints how long after its slot each run began. Another process makes the load, behind all
// others (nice), because the machine has few processors.
//
//	ONBEAT_TEST_LOAD=1m go test -run beatUnderLoad -v ./api
func TestServer_beatUnderLoad(t *testing.T) {
	long, err := time.ParseDuration(os.Getenv(loadTime))
	if err != nil {
		t.Skip("set " + loadTime + " to a duration")
	}
	srv := testredis.Private(t)
	cfg := onbeat.Config{Namespace: testredis.Namespace(t), Concurrency: 100}
	d, err := onbeat.New(srv.Client(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var lags []time.Duration
	run := handlers.Func(func(_ context.Context, x *task.Task) error {
		lag := time.Since(x.Slot)
		mu.Lock()
		defer mu.Unlock()
		lags = append(lags, lag)
		return nil
	})
	if err := d.Handle("beat", run); err != nil {
		t.Fatal(err)
	}
	if err := d.Schedule("beat", schedule.Every(100*time.Millisecond), "beat", nil); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	own, err := onbeat.New(srv.Client(), cfg) // the API has connections of its own
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(own.Admin(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := serving(t, s)
	measure := func(what string) {
		mu.Lock()
		lags = nil
		mu.Unlock()
		time.Sleep(long)
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(lags)
		n := len(lags)
		t.Logf("%s: %d of %d slots, lag p50 %v, p99 %v, max %v", what, n, long/(100*time.Millisecond), lags[n/2], lags[n*99/100], lags[n-1])
	}
	testredis.Eventually(t, 30*time.Second, func() bool { mu.Lock(); defer mu.Unlock(); return len(lags) > 10 }, "no beat")
	measure("alone")

	load, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(load, "nice", "-n", "19", os.Args[0], "-test.run", "^TestLoad_isMade$", "-test.v")
	cmd.Env = append(os.Environ(), loadURL+"=http://"+addr, loadTime+"="+(long+4*time.Second).String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(out)
	for in.Scan() && !strings.Contains(in.Text(), "begins") {
	}
	time.Sleep(time.Second)
	measure(fmt.Sprintf("beside %d requests a second", loadRate))
	for in.Scan() {
		if strings.Contains(in.Text(), "requests") {
			t.Log(strings.TrimSpace(in.Text()))
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// This is the process that makes the load.
func TestLoad_isMade(t *testing.T) {
	url := os.Getenv(loadURL)
	long, err := time.ParseDuration(os.Getenv(loadTime))
	if url == "" || err != nil {
		t.Skip("it is a part of another test")
	}
	ctx, stop := context.WithTimeout(t.Context(), long)
	defer stop()
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/events", http.NoBody)
			r.Header.Set("Accept", "text/event-stream")
			if resp, err := c.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	var mu sync.Mutex
	answers, took := map[int]int{}, []time.Duration{}
	fmt.Println("the load begins")
	began := time.Now()
	turns := make(chan struct{}, 64)
	go func() { // the rate does not depend on how fast the answers come, unless all senders wait for one
		defer close(turns)
		for n := 0; ctx.Err() == nil; time.Sleep(time.Millisecond) {
			for ; n < int(time.Since(began).Seconds()*loadRate) && ctx.Err() == nil; n++ {
				turns <- struct{}{}
			}
		}
	}()
	for range 32 {
		wg.Go(func() {
			for range turns {
				from := time.Now()
				code := mixed(c, url)
				mu.Lock()
				answers[code]++
				took = append(took, time.Since(from))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	c.CloseIdleConnections()
	slices.Sort(took)
	n := len(took)
	fmt.Printf("requests: %.0f a second, answers %v, each took p50 %v, p99 %v, max %v\n", float64(n)/time.Since(began).Seconds(), answers, took[n/2], took[n*99/100], took[n-1])
}

// mixed makes one request, six of ten of which read, and returns the status of its answer.
func mixed(c *http.Client, url string) int {
	method, path, body := http.MethodGet, "", ""
	switch n := rand.IntN(10); {
	case n < 2:
		path = "/v1/counts"
	case n < 4:
		path = "/v1/tasks?limit=20"
	case n < 5:
		path = "/v1/schedules"
	case n < 6:
		path = "/v1/schedules/beat/runs?limit=20"
	default:
		method, path, body = http.MethodPost, "/v1/tasks", `{"type":"mail.send","payload":{"to":"ann@example.com"},"in":"1h"}`
	}
	r, _ := http.NewRequest(method, url+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", fmt.Sprint(rand.Uint64()))
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}
