package main

import (
	"os"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
)

// A newcomer who pastes the first config of the README has no shop.example to call, so it must run without a network.
func TestREADME_firstConfigNeedsNoNetwork(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, ok := strings.Cut(text, "```")
	if !ok {
		t.Fatal("the README has no config")
	}
	c, err := config.Parse("onbeat.yaml", []byte(text), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Schedules) == 0 {
		t.Error("it declares no schedule")
	}
	for _, s := range c.Schedules {
		if s.Task != "echo" {
			t.Errorf("schedule %s is for the handler %s", s.Name, s.Task)
		}
	}
}
