package install

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

const composeFile = "../../deploy/compose.yaml"

// compose returns the command that runs Compose.
func compose(t *testing.T) []string {
	t.Helper()
	for _, c := range [][]string{{"docker", "compose"}, {"docker-compose"}} {
		out, err := exec.Command(c[0], append(c[1:], "version", "--short")...).Output()
		if err == nil && !strings.HasPrefix(string(out), "1.") {
			return c
		}
	}
	t.Skip("no Docker Compose 2 or newer") // Debian has none
	return nil
}

// Compose accepts the file, and each file that it mounts is there.
func TestCompose_isRight(t *testing.T) {
	t.Parallel()
	c := compose(t)
	var got struct {
		Services map[string]struct {
			Image string
			Ports []struct {
				HostIP string `json:"host_ip"`
			}
			Volumes []struct{ Type, Source string }
		}
		Configs map[string]struct{ File string }
	}
	out := command(t, c[0], append(c[1:], "-f", composeFile, "config", "--format", "json")...)
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"onbeat-1", "onbeat-2", "redis", "postgres", "prometheus", "grafana"} {
		if got.Services[name].Image == "" {
			t.Errorf("no service %s", name)
		}
	}
	var files []string
	for name, s := range got.Services {
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s is open to other machines", name)
			}
		}
		for _, v := range s.Volumes {
			if v.Type == "bind" {
				files = append(files, v.Source)
			}
		}
	}
	for _, c := range got.Configs {
		if c.File != "" {
			files = append(files, c.File)
		}
	}
	if len(files) < 3 {
		t.Errorf("it mounts %q only", files)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.IsDir() {
			t.Errorf("it mounts %s: %v", f, err)
		}
	}
}

// The two instances and Redis run, from images that were built here; a stop of the leader loses no beat.
func TestCompose_runsTheInstances(t *testing.T) {
	c, image := compose(t), image(t)
	if exec.Command("docker", "image", "inspect", "onbeat-test-redis:local").Run() != nil {
		lacks(t, "image of Redis: integration/image/build.sh makes it")
	}
	if exec.Command("docker", "network", "inspect", "bridge").Run() != nil {
		t.Skip("this engine has no bridges")
	}
	override := filepath.Join(t.TempDir(), "here.yaml") // other tests have the ports
	text := "services:\n  redis: {image: 'onbeat-test-redis:local'}\n  onbeat-1: {ports: !reset []}\n  onbeat-2: {ports: !reset []}\n"
	if err := os.WriteFile(override, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	project := testredis.Namespace(t)
	project = "t" + regexp.MustCompile(`[^a-z0-9]`).ReplaceAllString(strings.ToLower(project), "")
	args := append(slices.Clone(c[1:]), "-f", composeFile, "-f", override, "-p", project)
	t.Setenv("ONBEAT_IMAGE", image)
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := exec.Command(c[0], append(slices.Clone(args), "logs")...).CombinedOutput()
			t.Logf("%s", out)
		}
		_ = exec.Command(c[0], append(slices.Clone(args), "down", "--volumes")...).Run()
	})
	do := func(more ...string) string {
		t.Helper()
		return command(t, c[0], append(slices.Clone(args), more...)...)
	}
	do("up", "--detach", "--no-deps", "--pull", "never", "redis", "onbeat-1", "onbeat-2")
	onbeat := func(service string, more ...string) ([]byte, error) {
		all := append(slices.Clone(args), "exec", "-T", service, "/usr/bin/onbeat")
		return exec.CommandContext(t.Context(), c[0], append(all, more...)...).Output()
	}
	testredis.Eventually(t, time.Minute, func() bool {
		_, err := onbeat("onbeat-1", "instances", "--config", "/etc/onbeat/onbeat.yaml", "--wait", "ready=2", "--timeout", "10s")
		return err == nil
	}, "both instances are ready")
	do("stop", "onbeat-1")
	testredis.Eventually(t, time.Minute, func() bool {
		out, err := onbeat("onbeat-2", "schedules", "show", "heartbeat", "--redis", "redis://redis:6379/0", "-n", "shop", "--json")
		var s struct{ Runs int64 }
		return err == nil && json.Unmarshal(out, &s) == nil && s.Runs >= 2
	}, "the beat goes on")
	if out, err := onbeat("onbeat-2", "audit", "--redis", "redis://redis:6379/0", "-n", "shop"); err != nil {
		t.Errorf("audit: %v\n%s", err, out)
	}
}
