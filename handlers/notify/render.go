package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/wording"
)

// render writes a message as the target wants it.
func (t *Target) render(m *Message) (string, error) {
	switch t.Kind {
	case Slack:
		return encoded(map[string]any{"text": slackText.Replace(text(m))}), nil
	case Discord:
		return encoded(map[string]any{"content": wording.Cut(noLinks.Replace(text(m)), mostDiscord), "allowed_mentions": map[string]any{"parse": []string{}}}), nil
	case Teams:
		return encoded(card(m)), nil
	case Template:
		return fill(t.Template, m)
	}
	return encoded(map[string]any{"type": Type + "." + string(m.Topic), "timestamp": m.To, "data": titled{m.Title(), m}}), nil
}

// titled is a message with its title, as JSON.
type titled struct {
	Title string `json:"title"`
	*Message
}

// slackText escapes what would mention people or make a link.
var slackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// mostDiscord is a little less than the 2,000 characters that Discord takes.
const mostDiscord = 1900

// text is a message as plain text.
func text(m *Message) string {
	lines := []string{m.Title()}
	for _, line := range m.Lines() {
		lines = append(lines, "• "+line)
	}
	return strings.Join(lines, "\n")
}

// card is an adaptive card in the envelope that a workflow of Teams takes.
func card(m *Message) any {
	block := func(text string, more map[string]any) map[string]any {
		b := map[string]any{"type": "TextBlock", "text": noLinks.Replace(text), "wrap": true}
		for k, v := range more {
			b[k] = v
		}
		return b
	}
	body := []any{block(m.Title(), map[string]any{"weight": "Bolder", "size": "Medium"})}
	for _, line := range m.Lines() {
		body = append(body, block(line, map[string]any{"spacing": "Small"}))
	}
	return map[string]any{"type": "message", "attachments": []any{map[string]any{
		"contentType": "application/vnd.microsoft.card.adaptive",
		"content": map[string]any{
			"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": body,
		},
	}}}
}

// noLinks escapes what a card, or Discord, would make a link that hides where it leads.
var noLinks = strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`)

func encoded(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // texts, numbers and times of this millennium always encode
	return strings.TrimSuffix(b.String(), "\n")
}

// mostBody bounds what a template may write.
const mostBody = 64 << 10

var errLong = errors.New("the template writes more than 64 KiB")

// bounded is a buffer that refuses to grow beyond mostBody.
type bounded struct{ strings.Builder }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > mostBody {
		return 0, errLong
	}
	return b.Builder.Write(p)
}

func fill(with Executor, m *Message) (string, error) {
	var b bounded
	if err := with.Execute(&b, m); err != nil {
		return "", err
	}
	return b.String(), nil
}

// checkTemplate tries the template on a message of each topic, so that a fault shows when the config is read and not when
// something is wrong.
func (t *Target) checkTemplate() error {
	switch {
	case t.Kind != Template && t.Template == nil && t.ContentType == "":
		return nil
	case t.Kind != Template:
		return refuse("template", "", "is only for kind: template", "leave template and content_type out, or set kind: template")
	case t.Template == nil:
		return refuse("template", "", "missing", "a text/template, such as {\"text\": {{json .Title}}}")
	case strings.ContainsFunc(t.ContentType, func(r rune) bool { return r < ' ' || r > '~' }):
		return refuse("content_type", "", "has a character that a header cannot have", "such as text/plain; charset=utf-8")
	}
	own := t.withDefaults()
	for _, topic := range append(Topics(), Unread, Test) {
		body, err := fill(t.Template, Sample("namespace", topic, time.Unix(1_700_000_000, 0).UTC()))
		if err != nil {
			return refuse("template", "", "with a message of "+string(topic)+": "+oneLine(err.Error()), "see docs/notify.md for what a message has")
		}
		if strings.HasPrefix(own.ContentType, "application/json") && !json.Valid([]byte(body)) {
			return refuse("template", "", "does not make JSON of a message of "+string(topic), "put texts in by {{json .Title}}, or set content_type")
		}
	}
	return nil
}

// Sample is a message such as a target may get, to try it out. Its texts have characters that a template must not trip over.
func Sample(namespace string, topic Topic, at time.Time) *Message {
	m := &Message{Namespace: namespace, Topic: topic, From: at.Add(-time.Minute), To: at, Count: 1, Notices: []Notice{}}
	switch topic {
	case Test:
		m.Notices = append(m.Notices, Notice{At: at, Text: `this is what a message looks like; nothing is wrong`})
	case Leader, ArchiveBehind, Unread:
		m.Notices = append(m.Notices, Notice{At: at, Text: `an example with "quotes"`})
	default:
		m.Count = 1000
		m.Notices = append(m.Notices, Notice{At: at, Schedule: "example", Task: "example@1700000000000", Type: "http", Count: 3, Text: `an example`, Error: `dial tcp: "refused"`})
	}
	return m
}
