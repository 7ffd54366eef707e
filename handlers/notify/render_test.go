package notify

import (
	"encoding/json"
	"strings"
	"testing"
	"text/template"
	"time"
)

func parse(text string) *template.Template {
	return template.Must(template.New("").Funcs(Funcs()).Parse(text))
}

func TestRender_isWhatEachChatTakes(t *testing.T) {
	t.Parallel()
	m := &Message{Namespace: "shop", Topic: Dead, Count: 7, Notices: []Notice{
		{Schedule: "nightly", Text: "dead after 3 attempts", Error: "<!channel> & @everyone [x](y) \\[x\\](y)\n\x00"},
	}}
	for _, c := range []struct {
		target Target
		want   string
	}{
		{Target{Kind: Slack}, `{"text":"shop: 7 tasks are dead\n• nightly: dead after 3 attempts: &lt;!channel&gt; &amp; @everyone [x](y) \\[x\\](y)\n• and 6 more"}`},
		{Target{Kind: Discord}, `{"allowed_mentions":{"parse":[]},"content":"shop: 7 tasks are dead\n• nightly: dead after 3 attempts: <!channel> & @everyone \\[x\\](y) \\\\\\[x\\\\\\](y)\n• and 6 more"}`},
		{Target{Kind: Teams}, `{"attachments":[{"content":{"$schema":"http://adaptivecards.io/schemas/adaptive-card.json","body":[` +
			`{"size":"Medium","text":"shop: 7 tasks are dead","type":"TextBlock","weight":"Bolder","wrap":true},` +
			`{"spacing":"Small","text":"nightly: dead after 3 attempts: <!channel> & @everyone \\[x\\](y) \\\\\\[x\\\\\\](y)","type":"TextBlock","wrap":true},` +
			`{"spacing":"Small","text":"and 6 more","type":"TextBlock","wrap":true}],"type":"AdaptiveCard","version":"1.4"},` +
			`"contentType":"application/vnd.microsoft.card.adaptive"}],"type":"message"}`},
		{Target{Kind: Template, Template: parse(`{"summary": {{json .Title}}, "severity": "{{if eq .Topic "dead"}}critical{{else}}warning{{end}}"}`)},
			`{"summary": "shop: 7 tasks are dead", "severity": "critical"}`},
	} {
		c.target.Name, c.target.URL = "ops", "https://hooks.example"
		must(t, c.target.Validate())
		s, err := newSender(c.target)
		must(t, err)
		got, err := s.render(m)
		must(t, err)
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.target.Kind, got, c.want)
		}
	}
}

func TestRender_staysWithinWhatDiscordTakes(t *testing.T) {
	t.Parallel()
	m := &Message{Namespace: "shop", Topic: Dead, Count: 9}
	for range mostNotices {
		m.Notices = append(m.Notices, Notice{Schedule: strings.Repeat("s", 128), Text: "dead", Error: shortError(strings.Repeat("é", 4000))})
	}
	body, err := (&Target{Kind: Discord}).render(m)
	must(t, err)
	var got struct{ Content string }
	must(t, json.Unmarshal([]byte(body), &got))
	if n := len([]rune(got.Content)); n > 2000 {
		t.Errorf("%d characters", n)
	}
}

func TestTemplate_thatWritesWithoutEndIsRefused(t *testing.T) {
	t.Parallel()
	endless := Target{Name: "ops", URL: "https://hooks.example", Kind: Template, ContentType: "text/plain", Template: parse(`{{range 100000000}}endless {{end}}`)}
	began := time.Now()
	if err := endless.Validate(); err == nil || !strings.Contains(err.Error(), "64 KiB") {
		t.Errorf("%v", err)
	}
	if time.Since(began) > 5*time.Second {
		t.Error("took long")
	}
}
