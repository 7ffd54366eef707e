package producer

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/task"
)

// Heartbeat says which URLs hear of the runs of a schedule, by a GET without a body: a dead-man's switch that raises an alarm when
// URL stays silent. All three are secrets. ${NAME} in one is an environment variable, which the sender puts in.
type Heartbeat struct {
	// URL hears of each run that succeeded. Required.
	URL string `json:"url"`
	// Start hears of a run that began, and goes on when the leader looks. Default "": nothing does.
	Start string `json:"start,omitempty"`
	// Fail hears of each run whose last attempt failed. Default "": nothing does.
	Fail string `json:"fail,omitempty"`
}

const longestHeartbeat = 2 << 10

func (h *Heartbeat) urls() []*string { return []*string{&h.URL, &h.Start, &h.Fail} }

// validate refuses URLs that could not be used. No refusal shows one.
func (h *Heartbeat) validate() (list []error) {
	if h == nil {
		return nil
	}
	for i, at := range h.urls() {
		name := "heartbeat." + []string{"url", "start", "fail"}[i]
		if *at == "" && name == "heartbeat.url" {
			list = append(list, &task.FieldError{Field: name, Reason: "missing", Hint: "the URL that hears of each success"})
		} else if *at != "" {
			list = append(list, checkHeartbeatURL(name, *at))
		}
	}
	return list
}

// checkHeartbeatURL refuses a URL that no heartbeat could be sent to. A URL that begins with a variable is checked when that is put in.
func checkHeartbeatURL(field, raw string) error {
	const hint = "an absolute URL such as https://hc-ping.com/${HC_NIGHTLY}"
	if len(raw) > longestHeartbeat {
		return &task.FieldError{Field: field, Reason: "longer than 2 KiB", Hint: hint}
	}
	if at := heartbeatVariable.FindStringIndex(raw); at != nil && at[0] == 0 {
		return nil
	}
	u, err := url.Parse(heartbeatVariable.ReplaceAllString(raw, "x"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return &task.FieldError{Field: field, Reason: "not a URL of http or https", Hint: hint}
	}
	return nil
}

var heartbeatVariable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// Env lists, sorted, the environment variables to which the URLs refer.
func (h *Heartbeat) Env() (names []string) {
	if h == nil {
		return nil
	}
	for _, at := range h.urls() {
		for _, match := range heartbeatVariable.FindAllStringSubmatch(*at, -1) {
			names = append(names, match[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Masked returns the heartbeat with *** in the place of each URL.
func (h *Heartbeat) Masked() *Heartbeat {
	if h == nil {
		return nil
	}
	out := *h
	for _, at := range out.urls() {
		if *at != "" {
			*at = secret.Masked
		}
	}
	return &out
}

// ofHeartbeat reports whether a field of a schedule, as a change names it, has such a URL.
func ofHeartbeat(field string) bool {
	return field == "heartbeat" || strings.HasPrefix(field, "heartbeat.")
}

// hearts are the heartbeats of the schedules that the leader knows.
type hearts struct {
	mu sync.RWMutex
	of map[string]Heartbeat
}

func (h *hearts) set(name string, e *entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e == nil || e.s.Heartbeat == nil {
		delete(h.of, name)
		return
	}
	if h.of == nil {
		h.of = map[string]Heartbeat{}
	}
	h.of[name] = *e.s.Heartbeat
}

// Heartbeat returns the heartbeat of a schedule as this instance, which leads, knows it. It is safe for concurrent use.
func (s *Scheduler) Heartbeat(name string) (h Heartbeat, ok bool) {
	s.hearts.mu.RLock()
	defer s.hearts.mu.RUnlock()
	h, ok = s.hearts.of[name]
	return h, ok
}

// HearsStart reports whether any schedule has a URL that hears of a start: to look for starts costs a command.
func (s *Scheduler) HearsStart() bool {
	s.hearts.mu.RLock()
	defer s.hearts.mu.RUnlock()
	for _, h := range s.hearts.of {
		if h.Start != "" {
			return true
		}
	}
	return false
}
