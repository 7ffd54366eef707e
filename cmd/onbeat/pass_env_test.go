package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onbeat/onbeat/internal/testredis"
)

// A value that payloads refer to reaches the receiver. It reaches neither Redis nor the log nor the output of commands, not even if
// the receiver repeats it.
func TestPassEnv_keepsValuesOutOfRedisAndLogs(t *testing.T) {
	const value = "s3cr3t-of-the-test"
	t.Setenv("API_TOKEN", value)
	var right atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") == "Bearer "+value && string(body) == `{"token":"`+value+`"}` {
			right.Add(1)
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "denied: "+r.Header.Get("Authorization"))
	}))
	t.Cleanup(srv.Close)
	s := newShell(t)
	payload := `{"url": "` + srv.URL + `", "headers": {"Authorization": "Bearer ${API_TOKEN}"}, "body": {"token": "${API_TOKEN}"}}`
	file := s.file("c.yaml", "http: {pass_env: [API_TOKEN]}\nlog: {level: debug}\nschedules:\n"+
		"  - {name: warm, every: 200ms, task: http, max_attempts: 1, payload: "+payload+"}\n")
	stop := s.serving("-c", file, "--release", "v1")
	s.must("enqueue", "http", "--id", "one", "--max-attempts", "1", "--payload", payload)
	var said strings.Builder
	testredis.Eventually(t, patience, func() bool {
		said.Reset()
		for _, command := range []string{"tasks show one", "tasks list --json", "schedules show warm", "schedules runs warm --json", "events --json"} {
			said.WriteString(s.must(strings.Fields(command)...))
		}
		return right.Load() > 1 && strings.Contains(said.String(), "403 Forbidden: denied: Bearer ${API_TOKEN}")
	}, "no run was refused by the receiver")
	r := stop()
	if !strings.Contains(r.err, "denied: Bearer ${API_TOKEN}") {
		t.Errorf("the log: %s", r.err)
	}
	said.WriteString(r.out + r.err)
	keys, err := s.rdb.Keys(t.Context(), "*"+s.ns+"*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatalf("%v: %v", keys, err)
	}
	for _, key := range keys {
		said.WriteString(key)
		switch kind := s.rdb.Type(t.Context(), key).Val(); kind {
		case "hash":
			for k, v := range s.rdb.HGetAll(t.Context(), key).Val() {
				said.WriteString(k + v)
			}
		case "zset":
			said.WriteString(strings.Join(s.rdb.ZRange(t.Context(), key, 0, -1).Val(), " "))
		case "stream":
			for _, x := range s.rdb.XRange(t.Context(), key, "-", "+").Val() {
				for k, v := range x.Values {
					text, _ := v.(string)
					said.WriteString(k + text)
				}
			}
		case "string":
			said.WriteString(s.rdb.Get(t.Context(), key).Val())
		case "none": // it has expired
		default:
			t.Errorf("%s is a %s", key, kind)
		}
	}
	if all := said.String(); strings.Contains(all, value) || !strings.Contains(all, "${API_TOKEN}") {
		t.Error("the value is in Redis, in the log or in what commands print")
	}
}

// An instance that lacks a variable of its schedules warns when it starts.
func TestPassEnv_warnsAtTheStart(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("c.yaml", "http: {pass_env: [UNSET_OF_ONBEAT]}\nschedules:\n"+
		"  - {name: warm, every: 1h, task: http, payload: {url: 'http://127.0.0.1:1', body: '${UNSET_OF_ONBEAT}'}}\n")
	if r := s.serving("-c", file, "--release", "v1")(); !strings.Contains(r.err, "each run of a schedule will fail here") || !strings.Contains(r.err, "${UNSET_OF_ONBEAT}") {
		t.Errorf("%s", r.err)
	}
}
