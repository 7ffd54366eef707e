package admin_test

import (
	"encoding/json"
	"testing"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/producer"
)

func TestMasked_hidesWhatIsSecret(t *testing.T) {
	t.Parallel()
	payload, secret := json.RawMessage(`{"card":"4111","n":1}`), []string{"card"}
	const want = `{"card":"***","n":1}`
	list := admin.MaskedList(admin.List[admin.Task]{Items: []admin.Task{{Payload: payload, Secret: secret}}})
	if got := string(list.Items[0].Payload); got != want {
		t.Error(got)
	}
	if got := (admin.Task{PayloadText: "card 4111", Secret: secret}).Masked().PayloadText; got != "***" {
		t.Error(got)
	}
	if got := string(admin.Schedule{Schedule: producer.Schedule{Payload: payload, Secret: secret}}.Masked().Payload); got != want {
		t.Error(got)
	}
	changes := producer.MaskChanges([]producer.FieldChange{
		{Field: "payload.card", From: `"4111"`, To: `"4222"`}, {Field: "payload.n", From: "1", To: "2"}, {Field: "payload", From: string(payload)}, {Field: "task", To: "card"},
		{Field: `payload."a.b".card`, From: `"4111"`},
	}, []string{"card", `a\.b.card`})
	h := &producer.Heartbeat{URL: "https://x.example/sesame", Fail: "https://x.example/sesame"}
	if got := (admin.Schedule{Schedule: producer.Schedule{Heartbeat: h}}).Masked().Heartbeat; *got != (producer.Heartbeat{URL: "***", Fail: "***"}) || h.URL == "***" {
		t.Errorf("%+v", got)
	}
	if got := producer.MaskChanges([]producer.FieldChange{{Field: "heartbeat.url", To: h.URL}}, nil)[0]; got.To != "***" || got.From != "" {
		t.Errorf("%+v", got)
	}
	for i, want := range []string{`"***"`, "1", want, "", `"***"`} {
		if changes[i].From != want {
			t.Errorf("%s: %s, want %s", changes[i].Field, changes[i].From, want)
		}
	}
}
