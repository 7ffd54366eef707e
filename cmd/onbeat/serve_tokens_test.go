package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
)

// Each token is read by itself, whatever is wrong with another. A file that is gone withdraws its token. A failure that lasts is logged
// and counted again.
func TestTokens_areReadEachByItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := &config.API{}
	for _, name := range []string{"a", "b", "c"} {
		put(t, filepath.Join(dir, name), "the-first-secret-of-"+name)
		cfg.Tokens = append(cfg.Tokens, config.Token{Name: name, Role: "viewer", File: filepath.Join(dir, name)})
	}
	var log lockedBuffer
	s, err := newSecrets(cfg, os.Getenv, zerolog.New(&log))
	if err != nil {
		t.Fatal(err)
	}
	counted := 0
	s.count = func(string, string) { counted++ }
	has := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, token := range s.tokens() {
			got = append(got, strings.TrimPrefix(token.Secret, "the-"))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	has("at first", "first-secret-of-a", "first-secret-of-b", "first-secret-of-c")
	put(t, filepath.Join(dir, "a"), "short")
	put(t, filepath.Join(dir, "b"), "the-second-secret-of-b")
	s.again()
	has("with one that cannot be used", "first-secret-of-a", "second-secret-of-b", "first-secret-of-c")
	since := s.tokens()[0].Since
	s.again()
	if n := strings.Count(log.String(), "kept the old secret"); n != 1 || counted != 2 || s.tokens()[0].Trouble == "" || s.tokens()[0].Since != since || s.tokens()[1].Trouble != "" {
		t.Errorf("said %d times, counted %d: %+v", n, counted, s.tokens())
	}
	last := s.said["a"]
	last.at = last.at.Add(-2 * complainTime)
	s.said["a"] = last
	if s.again(); strings.Count(log.String(), "kept the old secret") != 2 {
		t.Error("what lasts is not said again")
	}
	put(t, filepath.Join(dir, "c"), "the-first-secret-of-a")
	s.again()
	has("with the secret of another", "first-secret-of-a", "second-secret-of-b", "first-secret-of-c")
	put(t, filepath.Join(dir, "c"), "the-first-secret-of-c")
	put(t, filepath.Join(dir, "a"), "the-first-secret-of-c")
	s.again()
	has("with the secret of a later one", "first-secret-of-a", "second-secret-of-b", "first-secret-of-c")
	put(t, filepath.Join(dir, "c"), "the-first-secret-of-a")
	put(t, filepath.Join(dir, "a"), "the-second-secret-of-a")
	s.again()
	has("when the other has a new one", "second-secret-of-a", "second-secret-of-b", "first-secret-of-a")
	if err := os.Remove(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	s.again()
	has("with a file that is gone", "second-secret-of-a", "", "first-secret-of-a")
	again, err := newSecrets(cfg, os.Getenv, zerolog.Nop()) // a restart lets nobody in by it, and works
	if err != nil || len(again.tokens()) != 3 || again.tokens()[1].Secret != "" || again.tokens()[1].Trouble == "" {
		t.Errorf("after a restart: %v, %+v", err, again)
	}
	put(t, filepath.Join(dir, "b"), "the-third-secret-of-b")
	s.again()
	has("with the file back", "second-secret-of-a", "third-secret-of-b", "first-secret-of-a")
	if token := s.tokens()[1]; token.Trouble != "" || !token.Since.IsZero() {
		t.Errorf("%+v", token)
	}
	if log := log.String(); strings.Contains(log, "-secret-of-") {
		t.Errorf("the log shows a secret: %s", log)
	}
}
