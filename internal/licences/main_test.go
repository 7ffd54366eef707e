package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// THIRD_PARTY_LICENSES has the licences of all that is linked now: `make licences` writes it.
func TestLicences_areCurrent(t *testing.T) {
	t.Parallel()
	var want bytes.Buffer
	if err := run(t.Context(), &want); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../THIRD_PARTY_LICENSES")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("THIRD_PARTY_LICENSES is not that of what is linked: run make licences")
	}
	for _, module := range []string{"github.com/redis/go-redis/v9", "github.com/alecthomas/kong", "golang.org/x/sys", "Go, its runtime"} {
		if !strings.Contains(string(got), "\n"+module) {
			t.Errorf("%s is not named", module)
		}
	}
	for _, module := range []string{"testcontainers", "porcupine", "goleak"} {
		if strings.Contains(string(got), module) {
			t.Errorf("%s is named, and only tests use it", module)
		}
	}
}
