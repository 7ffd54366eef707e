package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/store"
)

// Who names the sentinels already is not told to name them.
func TestHintOfReplica_fitsTheURL(t *testing.T) {
	t.Parallel()
	of := fmt.Errorf("%w: READONLY You can't write against a read only replica. script: 1234", store.ErrBusy)
	for url, want := range map[string]string{
		"redis://h:1/0": namePrimary, "rediss-cluster://h:1": namePrimary,
		"redis-sentinel://h:1/m": askSentinels, "rediss-sentinel://h:1/m": askSentinels,
	} {
		got := said(hintOfReplica(of, url))
		if !strings.Contains(got, "("+want+")") || strings.Contains(got, "script:") {
			t.Errorf("%s: %s", url, got)
		}
	}
}
