package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

// BullMQ runs in Node: node/bullmq.mjs says the same lines as a Go peer, and does the same in each scenario.

var bullMQ = filepath.Join("node", "node_modules", "bullmq", "package.json")

// findBullMQ finds out whether it is installed.
func findBullMQ() error {
	if _, err := exec.LookPath("node"); err != nil {
		return err
	}
	if bullMQVersion() == "" {
		return errors.New("not installed: run `npm install` in integration/bench/node")
	}
	return nil
}

func bullMQVersion() string {
	var about struct{ Version string }
	b, err := os.ReadFile(bullMQ)
	if err == nil {
		_ = json.Unmarshal(b, &about)
	}
	return about.Version
}
