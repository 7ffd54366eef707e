package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
)

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the code blocks of a language in a page.
func blocks(text, language string) []string {
	var list []string
	for _, part := range strings.Split(text, "```"+language+"\n")[1:] {
		code, _, _ := strings.Cut(part, "```")
		list = append(list, code)
	}
	return list
}

var (
	inText  = regexp.MustCompile("`(onbeat [^`]+)`")
	inBlock = regexp.MustCompile(`(?m)^(?: *\$ |ExecStart=\S*/| +)(onbeat [^#\n]+)`)
)

// commandsIn returns the lines of a page that run onbeat.
func commandsIn(text string) []string {
	var list []string
	for _, m := range append(inText.FindAllStringSubmatch(text, -1), inBlock.FindAllStringSubmatch(text, -1)...) {
		list = append(list, m[1])
	}
	return list
}

// anyParser is a parser for tests that run nothing. Making a parser takes longer than parsing hundreds of commands.
var (
	parsing   sync.Mutex
	anyParser = sync.OnceValues(func() (*kong.Kong, error) { return newParser(&cli{}, io.Discard, io.Discard) })
)

func parses(t *testing.T, args []string) {
	t.Helper()
	parsing.Lock()
	defer parsing.Unlock()
	parser, err := anyParser()
	if err != nil {
		t.Fatal(err)
	}
	command, err := parser.Parse(args)
	if err == nil {
		err = refuseIgnored(command)
	}
	if err != nil {
		t.Errorf("onbeat %s: %v", strings.Join(args, " "), err)
	}
}

func TestPages_showCommandsThatParse(t *testing.T) {
	t.Parallel()
	for name, least := range map[string]int{"operations.md": 15, "deploy.md": 3, "runbook.md": 5} {
		lines := commandsIn(readPage(t, name))
		if len(lines) < least {
			t.Errorf("%s shows %d commands, fewer than %d: did its form change?", name, len(lines), least)
		}
		for _, line := range lines {
			args := exampleArgs(line)
			if slices.Equal(args, []string{"lock", "run"}) { // named, and not shown
				continue
			}
			parses(t, args)
		}
	}
}

// manifest has the fields of the manifests in docs/deploy.md that the tests read.
type manifest struct {
	Kind string `yaml:"kind"`
	Spec struct {
		Template struct {
			Spec struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Command   []string `yaml:"command"`
					Args      []string `yaml:"args"`
					Liveness  probe    `yaml:"livenessProbe"`
					Readiness probe    `yaml:"readinessProbe"`
				} `yaml:"containers"`
			} `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
	Data      map[string]string `yaml:"data"`
	Readiness probe             `yaml:"readinessProbe"` // of a part that is no manifest
}

type probe struct {
	Exec struct {
		Command []string `yaml:"command"`
	} `yaml:"exec"`
	HTTP struct {
		Path string `yaml:"path"`
		Port string `yaml:"port"`
	} `yaml:"httpGet"`
}

func manifests(t *testing.T) map[string]manifest {
	t.Helper()
	byKind := map[string]manifest{}
	for _, block := range blocks(readPage(t, "deploy.md"), "yaml") {
		for part := range strings.SplitSeq(block, "---\n") {
			var m manifest
			if err := yaml.Unmarshal([]byte(part), &m); err != nil {
				t.Fatalf("%v in\n%s", err, part)
			}
			byKind[m.Kind] = m
		}
	}
	if len(byKind["Deployment"].Spec.Template.Spec.Containers) != 1 || byKind["ConfigMap"].Data["onbeat.yaml"] == "" {
		t.Fatalf("no Deployment with one container, or no ConfigMap with onbeat.yaml: %+v", byKind)
	}
	return byKind
}

// A supervisor that stops an instance must wait for its drain, then 2 s for handlers, 10 s for the last results, and 2 s to
// deregister.
const stopTime = 15 * time.Second

func TestOperations_showsConfigsThatWorkAndDrain(t *testing.T) {
	t.Parallel()
	byKind, text := manifests(t), readPage(t, "deploy.md")
	_, stop, _ := strings.Cut(text, "\nTimeoutStopSec=")
	stop, _, _ = strings.Cut(stop, "\n")
	unit, err := time.ParseDuration(stop + "s")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text string
		stop time.Duration
	}{
		"systemd":    {blocks(text, "yaml")[0], unit},
		"Kubernetes": {byKind["ConfigMap"].Data["onbeat.yaml"], time.Duration(byKind["Deployment"].Spec.Template.Spec.Grace) * time.Second},
	} {
		f, err := config.Parse("onbeat.yaml", []byte(c.text), testEnv("REDIS_PASSWORD", "x", "API_TOKEN", "0123456789abcdef"))
		if err == nil {
			err = errors.Join(f.Unset(), f.Check())
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := f.Dispatcher.Drain + stopTime; f.Dispatcher.Drain <= 0 || c.stop < want {
			t.Errorf("%s: an instance that drains for %v is killed after %v, sooner than %v", name, f.Dispatcher.Drain, c.stop, want)
		}
	}
}

func TestOperations_showsADeploymentThatStarts(t *testing.T) {
	t.Parallel()
	c := manifests(t)["Deployment"].Spec.Template.Spec.Containers[0]
	if !slices.Equal(c.Command, []string{"onbeat"}) {
		t.Errorf("it runs %q", c.Command)
	}
	parses(t, c.Args)
}

// The probe passes while this pod's instance is ready, and for no other instance.
func TestOperations_showsAProbeThatTells(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh here")
	}
	var probe []string
	for _, block := range blocks(readPage(t, "deploy.md"), "yaml") {
		var part manifest
		if strings.HasPrefix(block, "readinessProbe:") && yaml.Unmarshal([]byte(block), &part) == nil {
			probe = part.Readiness.Exec.Command
		}
	}
	if len(probe) != 3 || probe[0] != "sh" || probe[1] != "-c" {
		t.Fatalf("the probe is %q", probe)
	}
	list, filter, ok := strings.Cut(probe[2], " | ")
	if !ok || !strings.Contains(list, "--json") {
		t.Fatalf("the probe is %q", probe)
	}
	at := func(host, state string) admin.Instance {
		return admin.Instance{State: state, Host: host, Types: []string{"echo", "http"}}
	}
	for _, c := range []struct {
		lines  []admin.Instance
		passes bool
	}{
		{[]admin.Instance{at("pod-1", "ready")}, true},
		{[]admin.Instance{at("pod-2", "starting"), at("pod-1", "ready")}, true},
		{[]admin.Instance{at("pod-2", "ready"), at("pod-1", "starting")}, false},
		{[]admin.Instance{at("pod-11", "ready")}, false},
		{[]admin.Instance{at("pod-1", "draining")}, false},
		{nil, false},
	} {
		var out bytes.Buffer
		if err := newApp(&globals{}, testEnv(), nil, &out, io.Discard).printJSON(c.lines); err != nil {
			t.Fatal(err)
		}
		run := exec.CommandContext(t.Context(), sh, "-c", filter)
		run.Env, run.Stdin = append(os.Environ(), "HOSTNAME=pod-1"), &out
		if err := run.Run(); (err == nil) != c.passes {
			t.Errorf("%+v: %v", c.lines, err)
		}
	}
}
