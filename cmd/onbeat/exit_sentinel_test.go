package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/store"
)

// A user whose URL names the sentinels already gets no hint to name them.
func TestHintOfReplica_fitsTheURL(t *testing.T) {
	t.Parallel()
	of := fmt.Errorf("%w: READONLY You can't write against a read only replica. script: 1234", store.ErrBusy)
	for url, want := range map[string]string{
		"redis://h:1/0": admin.PrimaryHint("redis://"), "rediss-cluster://h:1": admin.PrimaryHint("redis://"),
		"redis-sentinel://h:1/m": admin.PrimaryHint("redis-sentinel://"), "rediss-sentinel://h:1/m": admin.PrimaryHint("redis-sentinel://"),
	} {
		got := said(hintOfReplica(of, url))
		if !strings.Contains(got, "("+want+")") || strings.Contains(got, "script:") {
			t.Errorf("%s: %s", url, got)
		}
	}
}
