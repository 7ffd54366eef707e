package config

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/outbox"
)

func TestOutbox_readsItsURLAsThatOfRedis(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	putKey(t, filepath.Join(dir, "url"), "postgres://u:hush@h/d\n", 0o600)
	for text, want := range map[string]string{
		"url: 'postgres://u:${PASSWORD}@h/d'": "postgres://u:hush@h/d",
		"url: file:url":                       "postgres://u:hush@h/d",
		"url: sqlite://shop.db":               "sqlite://" + filepath.Join(dir, "shop.db"),
		"url: sqlite:///shop.db\n  poll: 2s":  "sqlite:///shop.db",
	} {
		putKey(t, filepath.Join(dir, "x.yaml"), "namespace: shop\noutbox:\n  "+text+"\n", 0o600)
		f, err := Load(filepath.Join(dir, "x.yaml"), testEnv("PASSWORD", "hush"))
		if err == nil {
			err = errors.Join(f.Check(), f.Unset())
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		own, _ := f.Dispatcher.Outbox.(outbox.SQL)
		if own.URL != want || f.OutboxSecret {
			t.Errorf("%s: %s", text, own.URL)
		}
		if poll := own.Poll; (poll == 2*time.Second) != strings.Contains(text, "poll") {
			t.Errorf("%s: poll %s", text, poll)
		}
	}
	f, err := Parse("x.yaml", []byte("namespace: shop\noutbox: {url: 'postgres://u:hush@h/d'}\n"), testEnv())
	if err != nil || !f.OutboxSecret {
		t.Errorf("a password in the file: %v", err)
	}
	if f, err := Parse("x.yaml", []byte("namespace: shop\n"), testEnv()); err != nil || f.Dispatcher.Outbox != nil {
		t.Errorf("no outbox: %v", err)
	}
}

func TestOutbox_refusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	putKey(t, filepath.Join(dir, "open"), "postgres://u:hush@h/d\n", 0o666)
	putKey(t, filepath.Join(dir, "empty"), "\n", 0o600)
	for text, want := range map[string]string{
		"{}": "outbox.url", "{url: ''}": "outbox.url", "{url: 'mysql://u:hush@h/d'}": "outbox.url", "{url: file:absent}": "outbox.url",
		"{url: file:open}": "outbox.url", "{url: file:empty}": "outbox.url", "{url: 'sqlite://:memory:'}": "outbox.url",
		"{url: 'sqlite://x', poll: 1ms}": "outbox.poll", "{url: 'postgres://u:${PASSWORD}@h/d'}": "outbox.url", "{url: 'sqlite://x', pol: 1s}": "outbox.pol",
	} {
		putKey(t, filepath.Join(dir, "x.yaml"), "namespace: shop\noutbox: "+text+"\n", 0o600)
		f, err := Load(filepath.Join(dir, "x.yaml"), testEnv())
		if err == nil {
			err = errors.Join(f.Check(), f.Unset())
		}
		if about := field.Of(err); about == nil || about.Field != want {
			t.Errorf("%s: %v", text, err)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: a password is shown: %v", text, err)
		}
	}
}
