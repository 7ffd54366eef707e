package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/template"
	"time"

	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/private"
	"github.com/onbeat/onbeat/task"
)

// notifySettings are one target. Its URL and its key are secrets.
type notifySettings struct {
	Name         text     `yaml:"name"`
	URL          text     `yaml:"url"`
	URLFile      text     `yaml:"url_file"`
	Kind         text     `yaml:"kind"`
	Key          text     `yaml:"key"`
	KeyFile      text     `yaml:"key_file"`
	On           []string `yaml:"on"`
	Schedules    []string `yaml:"schedules"`
	Window       period   `yaml:"window"`
	Failing      nonzero  `yaml:"failing"`
	Stale        nonzero  `yaml:"stale"`
	Template     text     `yaml:"template"`
	TemplateFile text     `yaml:"template_file"`
	ContentType  text     `yaml:"content_type"`
	Timeout      period   `yaml:"timeout"`
	DenyPrivate  bool     `yaml:"deny_private"`
	TLSCA        text     `yaml:"tls_ca"`
}

// Notify are the targets of notifications, as the file names them. [Notify.Targets] reads their secrets.
type Notify struct {
	file *File
	list []webhook
}

// Len is how many targets the file names.
func (n *Notify) Len() int { return len(n.list) }

// webhook is one target without its secrets.
type webhook struct {
	target           notify.Target // without URL, Key and TLS
	url, urlFile     string        // the URL may have ${NAME} in it
	key, keyFile, ca string        // the key is ${NAME}
	field            string        // such as notify[0]
}

const (
	maxNotifyURL = 16 << 10
	maxTemplate  = 64 << 10
	urlHint      = "say url: ${NAME} for an environment variable, or url_file for a file of your own"
	signKeyHint  = "say key: ${NAME} for an environment variable, or key_file for a file of your own"
)

// takeNotify turns the settings into targets. A template that cannot be read is a problem of the file.
func (f *File) takeNotify(list []notifySettings) {
	f.Notify.file = f
	for i := range list {
		s := &list[i]
		w := webhook{
			url: string(s.URL), urlFile: f.path(string(s.URLFile)), key: string(s.Key), keyFile: f.path(string(s.KeyFile)),
			ca: f.path(string(s.TLSCA)), field: fmt.Sprintf("notify[%d]", i),
			target: notify.Target{
				Name: string(s.Name), Kind: notify.Kind(s.Kind), Schedules: s.Schedules, Window: time.Duration(s.Window),
				Failing: int(s.Failing), Stale: int(s.Stale), ContentType: string(s.ContentType),
				Timeout: time.Duration(s.Timeout), DenyPrivate: s.DenyPrivate || f.Handlers.HTTP.DenyPrivate,
			},
		}
		for _, topic := range s.On {
			w.target.On = append(w.target.On, notify.Topic(topic))
		}
		body := string(s.Template)
		if name := f.path(string(s.TemplateFile)); name != "" {
			if body != "" {
				f.problems = append(f.problems, f.doc.at("", refuse(w.field+".template_file", "", "beside a template", "keep one of the two")))
			}
			data, err := private.ReadLinked(name, maxTemplate)
			if err != nil {
				f.problems = append(f.problems, f.doc.at("", refuse(w.field+".template_file", string(s.TemplateFile), reasonOf(err), "name a file of your own that holds the template")))
				continue
			}
			body = string(data)
		}
		if body != "" {
			parsed, err := template.New("notify").Option("missingkey=error").Funcs(notify.Funcs()).Parse(body)
			if err != nil {
				f.problems = append(f.problems, f.doc.at("", refuse(w.field+".template", "", err.Error(), "see docs/notify.md for what a template has")))
				continue
			}
			w.target.Template = parsed
		}
		f.Notify.list = append(f.Notify.list, w)
	}
}

// checkNotify refuses targets that could not be used, whatever their secrets are.
func (f *File) checkNotify() error {
	var list []error
	named := map[string]bool{}
	for i := range f.Notify.list {
		w := &f.Notify.list[i]
		list = append(list, field.In(w.field, task.CheckName("name", w.target.Name)), w.checkURL(), w.checkKey(), field.In(w.field, w.target.CheckSettings()))
		if name := w.target.Name; named[name] && name != "" {
			list = append(list, refuse(w.field+".name", name, "used twice", "give each target its own name"))
		}
		named[w.target.Name] = true
	}
	return errors.Join(list...)
}

// checkURL refuses a chat's URL that is written in the file: anybody who knows the URL may write there.
func (w *webhook) checkURL() error {
	written := !variable.MatchString(w.url)
	switch {
	case (w.url == "") == (w.urlFile == ""):
		return refuse(w.field+".url", "", "missing, or beside a url_file", urlHint)
	case w.url == "" || !written:
		return nil
	case w.target.Kind == notify.Slack || w.target.Kind == notify.Discord || w.target.Kind == notify.Teams:
		return refuse(w.field+".url", "", "is a secret, and written in the file", urlHint)
	}
	own := w.target
	own.URL = w.url
	return field.In(w.field, own.CheckURL())
}

func (w *webhook) checkKey() error {
	switch {
	case w.key != "" && w.keyFile != "":
		return refuse(w.field+".key_file", "", "beside a key", "keep one of the two")
	case w.key != "" && !wholeVariable.MatchString(w.key):
		return refuse(w.field+".key", "", "written in the file", signKeyHint)
	}
	return nil
}

// Targets reads the secrets of the targets, from the environment and from files, and returns the targets. Its [Problems] list
// each secret that is not on this machine; none of them shows one.
func (n *Notify) Targets(getenv func(string) string) ([]notify.Target, error) {
	var targets []notify.Target
	var faults []error
	for i := range n.list {
		w := &n.list[i]
		t, err := w.resolved(getenv)
		if err == nil {
			err = field.In(w.field, t.Validate())
		}
		for _, one := range unjoined(err) {
			faults = append(faults, n.file.At(one))
		}
		targets = append(targets, t)
	}
	if err := Sorted(faults...); err != nil {
		return nil, err
	}
	return targets, nil
}

func unjoined(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // one that is wrapped is one error
		return joined.Unwrap()
	}
	return []error{err}
}

func (w *webhook) resolved(getenv func(string) string) (t notify.Target, err error) {
	t = w.target
	if t.URL, err = w.secret("url", w.url, w.urlFile, getenv); err != nil {
		return t, err
	}
	key, err := w.secret("key", w.key, w.keyFile, getenv)
	if err != nil {
		return t, err
	}
	if t.Key, err = notify.Key(key); err != nil {
		return t, field.In(w.field, err)
	}
	if w.ca != "" {
		pem, err := os.ReadFile(w.ca)
		if err != nil {
			return t, refuse(w.field+".tls_ca", w.ca, reasonOf(err), "a PEM file of the CAs to trust")
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return t, refuse(w.field+".tls_ca", w.ca, "has no certificate in it", "a PEM file of the CAs to trust")
		}
		t.TLS = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return t, nil
}

// secret reads a secret: a text with variables in it, or a file of the user's own.
func (w *webhook) secret(name, said, file string, getenv func(string) string) (string, error) {
	if file != "" {
		data, err := private.ReadLinked(file, maxNotifyURL)
		if err != nil {
			return "", refuse(w.field+"."+name+"_file", file, reasonOf(err), "a file for this user only that holds the secret")
		}
		return strings.TrimSpace(string(data)), nil
	}
	var missing error
	value := variable.ReplaceAllStringFunc(said, func(match string) string {
		env := match[2 : len(match)-1]
		v := getenv(env)
		if v == "" {
			missing = refuse(w.field+"."+name, match, "the environment variable is not set", "set "+env)
		}
		return v
	})
	return value, missing
}
