package main

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/private"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

// config is the config file. What is left out has the default that the library documents for it.
type config struct {
	Redis struct {
		URL     text `yaml:"url"` // the only place where ${NAME} stands for an environment variable
		TLSCA   text `yaml:"tls_ca"`
		TLSCert text `yaml:"tls_cert"`
		TLSKey  text `yaml:"tls_key"`
	} `yaml:"redis"`
	Namespace text `yaml:"namespace"`
	Release   text `yaml:"release"`

	Lead        text               `yaml:"lead"`
	Consume     text               `yaml:"consume"`
	Standby     bool               `yaml:"standby"`
	Concurrency integer            `yaml:"concurrency"`
	Queues      map[string]integer `yaml:"queues"`
	Strict      bool               `yaml:"strict"`
	Limits      map[string]integer `yaml:"limits"`
	Lease       duration           `yaml:"lease"`
	MinReady    duration           `yaml:"min_ready"`
	Drain       *duration          `yaml:"drain"`

	PayloadLimit integer          `yaml:"payload_limit"`
	Keep         keepConfig       `yaml:"keep"`
	Durability   durabilityConfig `yaml:"durability"`
	API          struct {
		Listen text `yaml:"listen"`
	} `yaml:"api"`
	HTTP httpConfig  `yaml:"http"`
	Exec *execConfig `yaml:"exec"`
	Log  logConfig   `yaml:"log"`

	Schedules []scheduleConfig `yaml:"schedules"`

	file     *yamlFile
	secret   bool                // the file has a password of Redis in it
	declared []producer.Schedule // Schedules, checked
}

type keepConfig struct {
	Dead    *integer `yaml:"dead"`
	Done    *integer `yaml:"done"`
	History *integer `yaml:"history"`
	Events  *integer `yaml:"events"`
}

type httpConfig struct {
	DenyPrivate   bool     `yaml:"deny_private"`
	Timeout       duration `yaml:"timeout"`
	MaxRedirects  integer  `yaml:"max_redirects"`
	RedirectBody  bool     `yaml:"redirect_body"`
	MaxRetryAfter duration `yaml:"max_retry_after"`
	IdlePerHost   integer  `yaml:"idle_per_host"`
}

type execConfig struct {
	Grace   duration `yaml:"grace"`
	PassEnv []string `yaml:"pass_env"`
	Output  integer  `yaml:"output"`
}

type logConfig struct {
	Level  text `yaml:"level"`
	Format text `yaml:"format"`
}

// loadConfig reads and checks a config file.
func (a *app) loadConfig(name string) (*config, error) {
	data, err := a.readConfig(name)
	if err != nil {
		return nil, err
	}
	return parseConfig(name, data, a.env)
}

// readConfig reads the file. One that nobody named, but that was found, is used only if it can be nobody else's.
func (a *app) readConfig(name string) ([]byte, error) {
	if name != a.private {
		return readFile(name, "config")
	}
	data, err := private.Read(name, maxFile)
	if err != nil {
		return nil, refusePrivate("config", name, err, "name another with -c")
	}
	return data, nil
}

// parseConfig reads a config file's text, and checks all that can be checked without Redis.
func parseConfig(name string, data []byte, env func(string) string) (*config, error) {
	f, err := parseYAML(name, data)
	if err != nil {
		return nil, err
	}
	c := &config{file: f}
	if err := f.decode(c); err != nil {
		return nil, err
	}
	if err := c.expand(env); err != nil {
		return nil, f.at("", err)
	}
	c.place()
	for _, check := range []func() error{
		c.checkRedis, c.checkNamespace, c.checkNumbers, c.instance().Validate, c.consumer().Validate, c.builtin().Validate,
		c.Durability.queue().Validate, c.checkAPI, c.checkLog,
	} {
		if err := check(); err != nil {
			return nil, f.at("", err)
		}
	}
	c.declared, err = checkSchedules(f, c.Schedules, task.Limits{Payload: int(c.PayloadLimit)}, true)
	return c, err
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// expand puts environment variables into the Redis URL, which may hold a password.
func (c *config) expand(env func(string) string) (err error) {
	c.secret = hasPassword(variable.ReplaceAllString(string(c.Redis.URL), ""))
	c.Redis.URL = text(variable.ReplaceAllStringFunc(string(c.Redis.URL), func(match string) string {
		name := match[2 : len(match)-1]
		value := env(name)
		if value == "" && err == nil {
			err = refuse("redis.url", match, "the environment variable is not set", "set "+name+", or write the URL out")
		}
		return value
	}))
	return err
}

func (c *config) checkNamespace() error {
	if _, there := c.file.lines["namespace"]; !there {
		return nil // a flag or the environment may say it
	}
	return queue.Partition{Namespace: string(c.Namespace)}.Validate()
}

func (c *config) checkNumbers() error {
	if c.PayloadLimit < 0 {
		return refuse("payload_limit", fmt.Sprint(c.PayloadLimit), "negative", "bytes; the default is 1 MiB")
	}
	for _, k := range []struct {
		name string
		n    *integer
	}{{"dead", c.Keep.Dead}, {"done", c.Keep.Done}, {"history", c.Keep.History}, {"events", c.Keep.Events}} {
		if k.n != nil && *k.n < 1 {
			return refuse("keep."+k.name, fmt.Sprint(*k.n), "out of range", "1 or more; leave it out for the default")
		}
	}
	return nil
}

func (c *config) checkAPI() error {
	listen := string(c.API.Listen)
	if listen == "" {
		return nil
	}
	const hint = "host:port, such as 127.0.0.1:8080"
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return refuse("api.listen", listen, "not an address", hint)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return refuse("api.listen", listen, "has a port that is none", hint)
	}
	return nil
}

func (c *config) checkLog() error {
	if _, err := c.Log.level(); err != nil {
		return err
	}
	switch c.Log.Format {
	case "", "json", "console":
		return nil
	}
	return refuse("log.format", string(c.Log.Format), "unknown format", "json or console")
}

func (l logConfig) level() (zerolog.Level, error) {
	switch l.Level {
	case "":
		return zerolog.InfoLevel, nil
	case "debug", "info", "warn", "error":
		return zerolog.ParseLevel(string(l.Level))
	}
	return 0, refuse("log.level", string(l.Level), "unknown level", "debug, info, warn or error")
}

func (k keepConfig) caps() queue.Caps {
	n := func(i *integer) int {
		if i == nil {
			return 0
		}
		return int(*i)
	}
	return queue.Caps{Dead: n(k.Dead), Done: n(k.Done), History: n(k.History), Events: n(k.Events)}
}

func (c *config) instance() instance.Config {
	return instance.Config{
		Release: string(c.Release), Lead: instance.Lead(c.Lead), Consume: instance.Consume(c.Consume),
		Lease: time.Duration(c.Lease), MinReady: time.Duration(c.MinReady),
	}
}

func (c *config) builtin() handlers.BuiltinConfig {
	b := handlers.BuiltinConfig{HTTP: handlers.HTTPConfig{
		DenyPrivate: c.HTTP.DenyPrivate, Timeout: time.Duration(c.HTTP.Timeout), MaxRedirects: int(c.HTTP.MaxRedirects),
		RedirectBody: c.HTTP.RedirectBody, MaxRetryAfter: time.Duration(c.HTTP.MaxRetryAfter), IdlePerHost: int(c.HTTP.IdlePerHost),
	}}
	if c.Exec != nil {
		b.Exec = handlers.ExecConfig{Grace: time.Duration(c.Exec.Grace), PassEnv: c.Exec.PassEnv, Output: int(c.Exec.Output)}
	}
	return b
}

// checkExec refuses what needs exec, unless the command line allows it.
func (c *config) checkExec(allowed bool) error {
	if allowed {
		return nil
	}
	const hint = "start with --allow-exec if whoever can enqueue may run programs here"
	if c.Exec != nil {
		return c.file.at("", refuse("exec", "", "exec is not allowed", hint))
	}
	for i, s := range c.declared {
		if s.Task == "exec" {
			return c.file.at(fmt.Sprintf("schedules[%d]", i), refuse("task", s.Task, "exec is not allowed", hint))
		}
	}
	return nil
}
