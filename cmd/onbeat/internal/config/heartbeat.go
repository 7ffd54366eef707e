package config

import (
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/internal/field"
)

// heartbeatSettings are those of the dispatcher. The URL is a secret.
type heartbeatSettings struct {
	URL     text   `yaml:"url"`
	URLFile text   `yaml:"url_file"`
	Every   period `yaml:"every"`
}

// Heartbeat is the heartbeat of the dispatcher, as the file names it. [Heartbeat.Resolve] reads its secret.
type Heartbeat struct {
	file  *File
	at    webhook
	every time.Duration
	http  handlers.HTTPConfig
}

func (f *File) takeHeartbeat(s *heartbeatSettings) {
	f.Heartbeat = Heartbeat{
		file: f, every: time.Duration(s.Every), http: f.Handlers.HTTP,
		at: webhook{url: string(s.URL), urlFile: f.path(string(s.URLFile)), field: "heartbeat"},
	}
}

// checkHeartbeat refuses a heartbeat that could not be used, whatever its secret is.
func (f *File) checkHeartbeat() error {
	h := &f.Heartbeat
	if !f.said("heartbeat") {
		return nil
	}
	if err := h.at.checkURL(); err != nil {
		return err
	}
	return field.In(h.at.field, notify.Heartbeat{Every: h.every}.Validate())
}

// Resolve reads the URL, from the environment or from a file. Its [Problems] say what is not on this machine; none of them shows it.
func (h *Heartbeat) Resolve(getenv func(string) string) (notify.Heartbeat, error) {
	out := notify.Heartbeat{Every: h.every, HTTP: h.http}
	if h.file == nil {
		return out, nil
	}
	var err error
	out.URL, err = h.at.secret("url", h.at.url, h.at.urlFile, getenv)
	out.Env = map[string]string{}
	for _, match := range variable.FindAllStringSubmatch(h.at.url, -1) {
		out.Env[match[1]] = getenv(match[1])
	}
	if err == nil {
		err = field.In(h.at.field, out.Validate())
	}
	if err != nil {
		return notify.Heartbeat{}, Sorted(h.file.At(err))
	}
	return out, nil
}
