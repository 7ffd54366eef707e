package main

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/internal/testredis"
)

// The kubelet has no token, and names the pod by its address.
func TestOperations_showsProbesThatTheAPIAnswers(t *testing.T) {
	t.Parallel()
	byKind := manifests(t)
	c, text := byKind["Deployment"].Spec.Template.Spec.Containers[0], byKind["ConfigMap"].Data["onbeat.yaml"]
	for _, p := range []probe{c.Liveness, c.Readiness} {
		if !strings.Contains(text, "listen: 0.0.0.0:"+p.HTTP.Port+"\n") {
			t.Errorf("the probe asks port %q, where the config does not listen", p.HTTP.Port)
		}
	}
	env := testEnv("REDIS_PASSWORD", "x", "API_TOKEN", "0123456789abcdef")
	open, err := config.Parse("onbeat.yaml", []byte(regexp.MustCompile(` *tokens:.*\n`).ReplaceAllString(text, "")), env)
	if err == nil {
		err = errors.Join(open.Unset(), open.Check())
	}
	if err == nil || !strings.Contains(err.Error(), "would let in everybody who reaches it") {
		t.Errorf("without tokens: %v", err)
	}

	s, dir := newShell(t), t.TempDir()
	for from, to := range map[string]string{`"redis://shop:${REDIS_PASSWORD}@redis:6379/0"`: s.url, "namespace: shop": "namespace: " + s.ns, "0.0.0.0:8080": "127.0.0.1:0", "min_ready: 10s": "min_ready: 0s"} {
		text = strings.Replace(text, from, to, 1)
	}
	p := startProgram(t, dir, []string{"API_TOKEN=0123456789abcdef"}, "serve", "-c", put(t, filepath.Join(dir, "onbeat.yaml"), text))
	url := urlOfAPI(t, p)
	ask := func(path string) int {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, http.NoBody)
		r.Host = "10.1.2.3:8080"
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	p.logs("leads")
	testredis.Eventually(t, patience, func() bool { return ask(c.Readiness.HTTP.Path) == 200 }, "never ready")
	if alive, counts := ask(c.Liveness.HTTP.Path), ask("/v1/counts"); alive != 200 || counts != 401 {
		t.Errorf("%s: %d, and all else %d", c.Liveness.HTTP.Path, alive, counts)
	}
}

// Without Redis a process is alive, and not ready.
func TestOperations_saysThatAnOutageOfRedisRestartsNoPod(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := put(t, filepath.Join(dir, "onbeat.yaml"), "redis: {url: 'redis://127.0.0.1:1/0'}\nnamespace: shop\napi: {listen: 127.0.0.1:0}\n")
	url := urlOfAPI(t, startProgram(t, dir, nil, "serve", "-c", c))
	client := &http.Client{Timeout: 10 * time.Second}
	if alive, ready := status(t, client, url+"/healthz", ""), status(t, client, url+"/readyz", ""); alive != 200 || ready != 503 {
		t.Errorf("alive: %d, ready: %d", alive, ready)
	}
}

// The script stops the old release only if the new one is ready, and the new one if it is not.
func TestOperations_showsAScriptThatRollsOut(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh here")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, dir := newShell(t), t.TempDir()
	s.serving("--release", "v43")
	script := blocks(readPage(t, "operations.md"), "sh")[0]
	if !strings.Contains(script, "/etc/onbeat/") || !strings.Contains(script, "2m") {
		t.Fatalf("the script is\n%s", script)
	}
	script = strings.NewReplacer("/etc/onbeat/", dir+"/", "2m", "2s").Replace(script)
	roll := put(t, filepath.Join(dir, "roll.sh"), script)
	for name, text := range map[string]string{"systemctl": `echo "$*" >> ` + dir + "/done\n", "onbeat": asProgram + "=1 exec " + exe + " \"$@\"\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
	}
	for _, release := range []string{"v43", "v44"} {
		put(t, filepath.Join(dir, release+".yaml"), "redis: {url: '"+s.url+"'}\nnamespace: "+s.ns+"\nschedules: [{name: a, every: 1h, task: echo}]\n")
	}
	for _, c := range []struct {
		release, done string
		works         bool
	}{
		{"v43", "start onbeat@v43\nstop onbeat@v42\n", true},
		{"v44", "start onbeat@v44\nstop onbeat@v44\n", false}, // no instance of it comes
	} {
		_ = os.Remove(filepath.Join(dir, "done"))
		run := exec.CommandContext(t.Context(), sh, roll, c.release, "v42")
		run.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir}
		out, err := run.CombinedOutput()
		done, _ := os.ReadFile(filepath.Join(dir, "done"))
		if (err == nil) != c.works || string(done) != c.done {
			t.Errorf("%s: %v, %q\n%s", c.release, err, done, out)
		}
	}
}
