package config

import (
	"strings"
	"testing"
	"time"
)

func TestHeartbeat_readsItsURLFromTheEnvironment(t *testing.T) {
	t.Parallel()
	f, err := Parse("x.yaml", []byte("heartbeat: {url: 'https://hc.example/${KEY}', every: 5m}\nhttp: {deny_private: true}"), testEnv())
	if err != nil || f.Check() != nil {
		t.Fatal(err, f.Check())
	}
	h, err := f.Heartbeat.Resolve(testEnv("KEY", "sesame"))
	if err != nil || h.URL != "https://hc.example/sesame" || h.Every != 5*time.Minute || !h.HTTP.DenyPrivate {
		t.Errorf("every %v, %v", h.Every, err)
	}
	if _, err := f.Heartbeat.Resolve(testEnv()); err == nil || !strings.Contains(err.Error(), "heartbeat.url") {
		t.Error(err)
	}
}

// Each fault names its field, and shows no URL.
func TestHeartbeat_refusesWhatCouldNotBeUsed(t *testing.T) {
	t.Parallel()
	const of = "schedules: [{name: a, every: 1m, task: echo, heartbeat: "
	for text, want := range map[string]string{
		"heartbeat: {url: 'ftp://x.example/sesame'}":                            "heartbeat.url",
		"heartbeat: {every: 1m}":                                                "heartbeat.url",
		"heartbeat: {url: 'https://x.example/sesame', url_file: x}":             "heartbeat.url",
		"heartbeat: {url: 'https://x.example/sesame', every: 1s}":               "heartbeat.every",
		"heartbeat: https://x.example/sesame":                                   "heartbeat",
		of + "{url: 'ftp://x.example/sesame'}}]":                                "schedules[0].heartbeat.url",
		of + "{start: 'https://x.example/sesame'}}]":                            "schedules[0].heartbeat.url",
		of + "{url: 'https://x.example', fail: 'sesame'}}]":                     "schedules[0].heartbeat.fail",
		of + "{url: 'https://x.example/${KEY}'}}]":                              "http.pass_env",
		of + "{url: 'https://x.example', failed: 'https://x.example/sesame'}}]": "schedules[0].heartbeat.failed",
		of + "'https://x.example/sesame'}]":                                     "schedules[0].heartbeat",
	} {
		f, err := Parse("x.yaml", []byte(text), testEnv())
		if err == nil {
			err = f.Check()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
