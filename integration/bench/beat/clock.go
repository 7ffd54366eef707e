package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ahead is how far the clock of the second host is ahead of the first one's, in the story of clocks.
const ahead = 700 * time.Millisecond

// The clock of a process cannot be set apart from that of the machine: time namespaces leave out the wall clock, and a Go program reads it
// without a library that could stand in (it calls the vDSO). So the replicas of the second host are this same program, built with a
// standard library whose time.Now adds so much to the wall clock, and nothing to the monotonic one: no source of a peer changes.
const (
	readsClock = "\tsec, nsec, mono := runtimeNow()\n"
	addsAhead  = readsClock + "\tsec, nsec = onbeatAhead(sec, nsec)\n"
	aheadFunc  = `
func onbeatAhead(sec int64, nsec int32) (int64, int32) {
	n := int64(nsec) + %d
	return sec + n/1e9, int32(n %% 1e9)
}
`
)

// buildAhead builds this program with a clock that is ahead, in a folder, and returns its path.
func buildAhead(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if bytes.Count(source, []byte(readsClock)) != 1 {
		return "", fmt.Errorf("%s does not read the clock as this program knows it", original)
	}
	source = bytes.Replace(source, []byte(readsClock), []byte(addsAhead), 1)
	source = fmt.Appendf(source, aheadFunc, ahead.Nanoseconds())
	changed, overlay, program := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "ahead")
	what, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", err
	}
	for path, text := range map[string][]byte{changed: source, overlay: what} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return "", err
		}
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-overlay", overlay, "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build with a clock that is ahead: %w: %s", err, bytes.TrimSpace(out))
	}
	return program, nil
}
