package notify

import (
	"cmp"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/sign"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// Kind is how a target wants its messages.
type Kind string

// The kinds.
const (
	JSON     Kind = "json"     // as JSON, signed: see [Verify]
	Slack    Kind = "slack"    // for an incoming webhook of Slack, or of a chat that takes the same, such as Mattermost
	Discord  Kind = "discord"  // for a webhook of Discord
	Teams    Kind = "teams"    // for a workflow of Microsoft Teams: an adaptive card
	Template Kind = "template" // as [Target.Template] says
)

// Kinds are all of them.
func Kinds() []Kind { return []Kind{JSON, Slack, Discord, Teams, Template} }

// Target is one webhook. Name and URL are required.
type Target struct {
	// Name names the target in tasks, metrics, events and errors.
	Name string
	// URL is where messages are sent. It is a secret: nothing shows it.
	URL string
	// Kind is how the target wants its messages. Default JSON.
	Kind Kind
	// Key signs each request, if there is one: at least 16 bytes. It is a secret too.
	Key []byte

	// On are the topics that the target hears of. Default: all but Leader, and with Schedules only those about schedules and [Hung]
	// workers, which hold up all schedules.
	On []Topic
	// Schedules are patterns, as [path.Match] has them with * for slashes too, of the schedules that the target hears of. Default:
	// all, and tasks of no schedule.
	Schedules []string
	// Window is how long things gather into one message. Windows begin at multiples of it. Default 1m.
	Window time.Duration
	// Failing is after how many failures in a row a schedule or type is failing. Default 5.
	Failing int
	// Stale is for how many times the gap between its slots a schedule must not have succeeded to be stale. Default 3.
	Stale int

	// Template makes the body of a request out of a [*Message]; for the kind Template. See [Funcs].
	Template Executor
	// ContentType is that of the template's text. Default application/json.
	ContentType string

	// Timeout bounds a request. Default 10s.
	Timeout time.Duration
	// DenyPrivate refuses to send to addresses that are not on the public internet; see handlers.HTTPConfig.
	DenyPrivate bool
	// TLS is used for https. Default: that of net/http.
	TLS *tls.Config
}

// Executor is a [text/template.Template], or a value that is executed like one. A program links that package only if it has such a target.
//
// [text/template.Template]: https://pkg.go.dev/text/template#Template
type Executor interface {
	Execute(w io.Writer, message any) error
}

// Funcs are functions for [text/template.Template.Funcs]: json writes a value as JSON.
//
// [text/template.Template.Funcs]: https://pkg.go.dev/text/template#Template.Funcs
func Funcs() map[string]any {
	return map[string]any{"json": func(v any) (string, error) {
		b, err := json.Marshal(v)
		return string(b), err
	}}
}

// The bounds of a target.
const (
	leastWindow = time.Second
	mostWindow  = 24 * time.Hour
	mostTimeout = time.Minute
	mostInARow  = 1000
)

func (t Target) withDefaults() Target {
	t.Kind = cmp.Or(t.Kind, JSON)
	t.Window = cmp.Or(t.Window, time.Minute)
	t.Failing = cmp.Or(t.Failing, 5)
	t.Stale = cmp.Or(t.Stale, 3)
	t.Timeout = cmp.Or(t.Timeout, 10*time.Second)
	t.ContentType = cmp.Or(t.ContentType, "application/json")
	if len(t.On) == 0 {
		t.On = chosen(t.Schedules)
	}
	return t
}

// hears reports whether the target hears of a topic; schedule is that of the thing, or "".
func (t *Target) hears(topic Topic, schedule string) bool {
	if topic == Unread {
		return true
	}
	if !slices.Contains(t.On, topic) {
		return false
	}
	return len(t.Schedules) == 0 || !slices.Contains(ofSchedules, topic) || topic == Hung && schedule == "" ||
		schedule != "" && slices.ContainsFunc(t.Schedules, func(p string) bool { return matches(p, schedule) })
}

// flat makes a slash a character like any other for path.Match.
var flat = strings.NewReplacer("/", "\x00")

func matches(pattern, name string) bool {
	ok, _ := path.Match(flat.Replace(pattern), flat.Replace(name))
	return ok
}

// Validate refuses targets that could not be used, with a [*task.FieldError] for each fault. No error shows a URL or a key.
func Validate(targets []Target) error {
	var list []error
	named := map[string]bool{}
	for i := range targets {
		t := &targets[i]
		list = append(list, field.In(fmt.Sprintf("notify[%d]", i), t.Validate()))
		if named[t.Name] && t.Name != "" {
			list = append(list, refuse(fmt.Sprintf("notify[%d].name", i), t.Name, "named twice", "give each target its own name"))
		}
		named[t.Name] = true
	}
	return wording.Join(list...)
}

// Validate refuses a target that could not be used.
func (t *Target) Validate() error {
	return wording.Join(task.CheckName("name", t.Name), t.CheckURL(), t.CheckSettings())
}

// CheckSettings is Validate without the name and the URL.
func (t *Target) CheckSettings() error {
	list := []error{t.checkKind(), t.checkTopics(), t.checkTemplate()}
	if n := len(t.Key); n > 0 && n < sign.LeastKey {
		list = append(list, refuse("key", "", fmt.Sprintf("fewer than %d bytes", sign.LeastKey), "make one with: openssl rand -hex 32"))
	}
	for i, p := range t.Schedules {
		if _, err := path.Match(flat.Replace(p), ""); err != nil || p == "" {
			list = append(list, refuse(fmt.Sprintf("schedules[%d]", i), p, "not a pattern", `a name, or a pattern such as "billing.*"`))
		}
	}
	if t.Window != 0 && (t.Window < leastWindow || t.Window > mostWindow || t.Window%time.Second != 0) {
		list = append(list, refuse("window", t.Window.String(), "out of range", "whole seconds, from 1s to 24h"))
	}
	if t.Timeout < 0 || t.Timeout > mostTimeout {
		list = append(list, refuse("timeout", t.Timeout.String(), "out of range", "up to 1m"))
	}
	if t.Failing < 0 || t.Failing > mostInARow {
		list = append(list, refuse("failing", fmt.Sprint(t.Failing), "out of range", "1 to 1000 failures in a row"))
	}
	if t.Stale < 0 || t.Stale == 1 || t.Stale > mostInARow {
		list = append(list, refuse("stale", fmt.Sprint(t.Stale), "out of range", "2 to 1000 gaps between slots"))
	}
	return wording.Join(list...)
}

func (t *Target) checkKind() error {
	if t.Kind == "" || slices.Contains(Kinds(), t.Kind) {
		return nil
	}
	return refuse("kind", string(t.Kind), "unknown", fmt.Sprint("one of ", list(Kinds())))
}

func (t *Target) checkTopics() error {
	var faults []error
	for _, topic := range t.On {
		faults = append(faults, knownTopic(topic))
	}
	if slices.Contains(t.On, Recovered) && !slices.Contains(t.On, Failing) && !slices.Contains(t.On, Stale) {
		faults = append(faults, refuse("on", string(Recovered), "nothing can recover", "add failing or stale"))
	}
	return wording.Join(faults...)
}

// CheckURL is the part of Validate about the URL. It never shows the URL: with the URL of a chat's webhook, anybody can write
// there.
func (t *Target) CheckURL() error {
	const hint = "an absolute URL such as https://alerts.example/onbeat"
	u, err := url.Parse(t.URL)
	switch {
	case t.URL == "":
		return refuse("url", "", "missing", hint)
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return refuse("url", "", "not a URL of http or https", hint)
	case u.Scheme == "http" && (t.Kind == Slack || t.Kind == Discord || t.Kind == Teams):
		return refuse("url", "", "is not https, and holds a secret", "begin it with https")
	}
	return nil
}

func refuse(name, value, reason, hint string) error {
	return &task.FieldError{Field: name, Value: value, Reason: reason, Hint: hint}
}

// list writes words for a person.
func list[W ~string](words []W) string {
	var all []string
	for _, w := range words {
		all = append(all, string(w))
	}
	return strings.Join(all, ", ")
}
