package handlers_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

func TestEcho_logsThePayload(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		``:            `{"level":"info","task":"id","attempt":1,"message":"echo"}`,
		`{"a": [1]}`:  `{"level":"info","task":"id","attempt":1,"payload":{"a": [1]},"message":"echo"}`,
		`{"a":`:       `{"level":"info","task":"id","attempt":1,"payload":"{\"a\":","message":"echo"}`,
		"\xffb\n{\"}": `{"level":"info","task":"id","attempt":1,"payload":"\ufffdb\n{\"}","message":"echo"}`,
	} {
		var out bytes.Buffer
		if err := handlers.Echo(zerolog.New(&out)).Handle(t.Context(), &task.Task{ID: "id", Attempt: 1, Payload: []byte(payload)}); err != nil {
			t.Error(err)
		}
		if got := out.String(); got != want+"\n" || !json.Valid(out.Bytes()) {
			t.Errorf("%q: wrote %s\nwant %s", payload, got, want)
		}
	}
}

func TestEcho_saysTheSlot(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	for want, x := range map[string]*task.Task{
		`{"level":"info","task":"a@1","schedule":"a","slot":"2026-01-02T03:04:05.006000000Z","attempt":0,"message":"echo"}`: {
			ID: "a@1", Schedule: "a", Slot: at, Due: at.Add(time.Hour)},
		`{"level":"info","task":"x","slot":"2026-01-02T03:04:05.006000000Z","attempt":0,"message":"echo"}`: {ID: "x", Due: at, Created: at.Add(-1)},
		`{"level":"info","task":"y","slot":"2026-01-02T03:04:05.006000000Z","attempt":0,"message":"echo"}`: {ID: "y", Created: at},
	} {
		var out bytes.Buffer
		if err := handlers.Echo(zerolog.New(&out)).Handle(t.Context(), x); err != nil {
			t.Error(err)
		}
		if out.String() != want+"\n" {
			t.Errorf("wrote %s\nwant  %s", out.String(), want)
		}
	}
}
