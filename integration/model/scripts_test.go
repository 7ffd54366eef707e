package model

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name Redis gives a script; no secret hangs on it
	"encoding/hex"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/store"
)

// scripts stands between a client and its server, and replaces scripts by broken ones.
type scripts struct {
	loaded []string          // sources that were loaded, in order
	called []string          // the hashes of the scripts that ran, in order
	broken map[string]string // the hash of a script -> the source that runs in its place
}

// swap returns the command to pass to the server.
func (s *scripts) swap(args []string) []string {
	if strings.EqualFold(args[0], "evalsha") {
		s.called = append(s.called, args[1])
	}
	switch {
	case len(args) > 2 && strings.EqualFold(args[0], "script") && strings.EqualFold(args[1], "load"):
		s.loaded = append(s.loaded, args[2])
	case len(args) > 1 && strings.EqualFold(args[0], "evalsha") && s.broken[args[1]] != "":
		args[0], args[1] = "eval", s.broken[args[1]]
	}
	return args
}

// sources returns all scripts of the program as they run, by name.
func sources(t testing.TB) map[string]string {
	t.Helper()
	s := &scripts{}
	_, rdb := connect(t, s)
	by := map[string]string{}
	for _, script := range store.Scripts() {
		if err := script.Load(context.Background(), rdb); err != nil {
			t.Fatal(err)
		}
		by[script.Name] = s.loaded[len(s.loaded)-1]
	}
	return by
}

func hash(source string) string {
	sum := sha1.Sum([]byte(source)) //nolint:gosec // as above
	return hex.EncodeToString(sum[:])
}
