package notify

import (
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/field"
)

func TestValidate_refusesEachFaultAndShowsNoSecret(t *testing.T) {
	t.Parallel()
	good := Target{Name: "ops", URL: "https://hooks.example/T0/B0/sesame"}
	for _, c := range []struct {
		field  string
		change func(*Target)
	}{
		{"name", func(t *Target) { t.Name = "on call" }},
		{"url", func(t *Target) { t.URL = "" }},
		{"url", func(t *Target) { t.URL = "ftp://hooks.example/sesame" }},
		{"url", func(t *Target) { t.URL = "http://hooks.example/sesame"; t.Kind = Slack }},
		{"url", func(t *Target) { t.URL = "https://sesame\x7f/" }},
		{"kind", func(t *Target) { t.Kind = "pager" }},
		{"key", func(t *Target) { t.Key = []byte("sesame") }},
		{"on", func(t *Target) { t.On = []Topic{"fire"} }},
		{"on", func(t *Target) { t.On = []Topic{Recovered} }},
		{"schedules[0]", func(t *Target) { t.Schedules = []string{"[a"} }},
		{"window", func(t *Target) { t.Window = time.Millisecond }},
		{"timeout", func(t *Target) { t.Timeout = time.Hour }},
		{"failing", func(t *Target) { t.Failing = -1 }},
		{"stale", func(t *Target) { t.Stale = 1 }},
		{"template", func(t *Target) { t.Kind = Template }},
		{"template", func(t *Target) { t.Template = parse("x") }},
		{"template", func(t *Target) { t.Kind, t.Template = Template, parse(`{{.Nothing}}`) }},
		{"template", func(t *Target) { t.Kind, t.Template = Template, parse(`{"text": "{{range .Lines}}{{.}}{{end}}"}`) }},
		{"content_type", func(t *Target) { t.Kind, t.Template, t.ContentType = Template, parse("x"), "text/plain\n" }},
	} {
		bad := good
		c.change(&bad)
		err := Validate([]Target{bad})
		if f := field.Of(err); f == nil || f.Field != "notify[0]."+c.field {
			t.Errorf("%s: %v", c.field, err)
		}
		if err != nil && strings.Contains(err.Error(), "sesame") {
			t.Errorf("shows a secret: %v", err)
		}
	}
	must(t, Validate([]Target{good}))
	if err := Validate([]Target{good, good}); err == nil {
		t.Error("took one name twice")
	}
}

func TestTarget_hearsOfItsSchedules(t *testing.T) {
	t.Parallel()
	some := Target{Name: "a", Schedules: []string{"billing*", "nightly"}}.withDefaults()
	all := Target{Name: "b"}.withDefaults()
	both := Target{Name: "c", On: []Topic{Dead, Leader}, Schedules: []string{"x"}}.withDefaults()
	for _, c := range []struct {
		target   *Target
		topic    Topic
		schedule string
		want     bool
	}{
		{&some, Dead, "billing/eu/vat", true}, {&some, Dead, "nightly", true}, {&some, Dead, "nightly2", false}, {&some, Dead, "", false},
		{&some, Leader, "", false}, {&some, ArchiveBehind, "", false}, {&some, Unread, "", true},
		{&all, Dead, "", true}, {&all, Leader, "", false}, {&all, ArchiveBehind, "", true},
		{&both, Leader, "", true}, {&both, Missed, "x", false}, {&both, Dead, "x", true},
	} {
		if got := c.target.hears(c.topic, c.schedule); got != c.want {
			t.Errorf("%s of %s %q: %v", c.target.Name, c.topic, c.schedule, got)
		}
	}
}
