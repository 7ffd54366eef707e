package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"
)

// surrounding is the job of the process around the onbeat program: it scrapes the program, has its pages open, and takes its traces and
// messages.
const surrounding = "surround"

// surround prints the URL that takes traces and messages, and works until standard input ends.
func surround(ctx context.Context, j *job) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	}()
	fmt.Println("http://" + l.Addr().String())
	if j.Params.has("metrics") {
		go again(ctx, time.Second, func() { _, _ = fetch(ctx, j.API+"/metrics") })
	}
	if j.Params.has("ten pages") {
		for range 10 {
			j.open(ctx)
		}
	}
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	return nil
}

// open has the overview open, as a browser has it: a stream of events, and the requests of the page, as often as the page makes them.
func (j *job) open(ctx context.Context) {
	go again(ctx, time.Second, func() { j.follow(ctx) })
	for path, every := range map[string]time.Duration{
		"/status?age=2500ms": 3 * time.Second, "/counts?age=2500ms": 3 * time.Second, "/instances?age=2500ms": 3 * time.Second,
		"/summary?since=5m&age=2500ms": 15 * time.Second,
	} {
		go again(ctx, every, func() { _, _ = fetch(ctx, j.API+"/v1"+path) })
	}
	go again(ctx, 3*time.Second, func() {
		now := time.Now().UTC()
		q := url.Values{"from": {now.Add(-10 * time.Minute).Format(time.RFC3339)}, "to": {now.Format(time.RFC3339)}, "step": {"2s"}, "age": {"2500ms"}}
		_, _ = fetch(ctx, j.API+"/v1/beat?"+q.Encode())
	})
}

// follow reads the stream of events until it ends.
func (j *job) follow(ctx context.Context) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, j.API+"/v1/events?status=true", http.NoBody)
	if err != nil {
		return
	}
	q.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
}

// again does something at once, and then again and again.
func again(ctx context.Context, every time.Duration, do func()) {
	for ctx.Err() == nil {
		do()
		select {
		case <-time.After(every):
		case <-ctx.Done():
		}
	}
}
