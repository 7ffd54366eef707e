package install

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// lacks skips a test that has no tool to run with, unless all of them are required.
func lacks(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("ONBEAT_REQUIRE_REAL") == "1" {
		t.Fatalf("ONBEAT_REQUIRE_REAL=1, and there is no %s", what)
	}
	t.Skipf("no %s", what)
}

// command runs a command, and returns what it prints on stdout.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	var errs bytes.Buffer
	c := exec.CommandContext(t.Context(), name, args...)
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return strings.TrimSpace(string(out))
}

const imageName = "onbeat-test-image:local"

// building keeps two builds out of the one folder that `make image` gathers an image in.
var building struct {
	sync.Mutex
	built map[string]bool
}

// image builds the image once.
func image(t *testing.T) string {
	t.Helper()
	return imageOf(t, imageName)
}

// imageOf builds an image once, by a name of its own, with more variables of make.
func imageOf(t *testing.T, name string, variables ...string) string {
	t.Helper()
	if exec.Command("docker", "info").Run() != nil {
		lacks(t, "Docker engine")
	}
	building.Lock()
	defer building.Unlock()
	if building.built == nil {
		building.built = map[string]bool{}
	}
	if !building.built[name] {
		command(t, "make", append([]string{"--no-print-directory", "-C", "../..", "image", "IMAGE=" + name}, variables...)...)
		building.built[name] = true
	}
	return name
}

// container starts the image as a careful user does: nothing can be written, and nothing is allowed.
func container(t *testing.T, image string, options []string, args ...string) (id string) {
	t.Helper()
	all := append([]string{"run", "--detach", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"}, options...)
	id = command(t, "docker", append(append(all, image), args...)...)
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := exec.Command("docker", "logs", id).CombinedOutput()
			t.Logf("%s", out)
		}
		_ = exec.Command("docker", "rm", "--force", "--volumes", id).Run()
	})
	return id
}

func TestImage_isSmallAndNobody(t *testing.T) {
	t.Parallel()
	var got []struct {
		Config struct {
			User        string
			Labels      map[string]string
			Healthcheck struct{ Test []string }
		}
	}
	if err := json.Unmarshal([]byte(command(t, "docker", "image", "inspect", image(t))), &got); err != nil {
		t.Fatal(err)
	}
	c := got[0].Config
	if !regexp.MustCompile(`^[1-9][0-9]+:[1-9][0-9]+$`).MatchString(c.User) {
		t.Errorf("it runs as %q: Kubernetes cannot tell that this is not root", c.User)
	}
	for _, name := range []string{"version", "revision", "created", "source", "licenses"} {
		if c.Labels["org.opencontainers.image."+name] == "" {
			t.Errorf("it has no label %s", name)
		}
	}
	if len(c.Healthcheck.Test) == 0 {
		t.Error("it has no health check")
	}
	save := exec.CommandContext(t.Context(), "docker", "save", image(t))
	out, err := save.StdoutPipe()
	if err == nil {
		err = save.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var size counter
	zip := gzip.NewWriter(&size)
	if _, err := io.Copy(zip, out); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil || save.Wait() != nil || size == 0 || size > 30<<20 {
		t.Errorf("compressed it has %d bytes: %v", size, err)
	}
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func TestImage_showsTheDashboardToTheHolderOfItsToken(t *testing.T) {
	t.Parallel()
	id := container(t, image(t), nil, "dev")
	var said string
	testredis.Eventually(t, time.Minute, func() bool {
		said = command(t, "docker", "logs", id)
		return strings.Contains(said, "Token of the dashboard")
	}, "it says its token")
	testredis.Eventually(t, time.Minute, func() bool {
		return command(t, "docker", "inspect", "--format", "{{.State.Health.Status}}", id) == "healthy"
	}, "it is healthy")
	token := regexp.MustCompile(`Token[^:]*: (\S+)`).FindStringSubmatch(said)
	// From inside, because an engine may have no bridge to publish a port on.
	get := func(token string) error {
		return exec.CommandContext(t.Context(), "docker", "exec", "--env", "ONBEAT_TOKEN="+token, id, "/usr/bin/onbeat", "schedules", "show", "heartbeat", "--api", "http://127.0.0.1:8080").Run()
	}
	if err := get(token[1]); err != nil {
		t.Errorf("with the token: %v", err)
	}
	if get("0123456789abcdef") == nil {
		t.Error("it lets in who has no token")
	}
	command(t, "docker", "stop", "--time", "60", id)
	if code := command(t, "docker", "inspect", "--format", "{{.State.ExitCode}}", id); code != "0" {
		t.Errorf("after a stop: exit %s", code)
	}
}

func TestImage_runsTheDemo(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the demo takes half a minute")
	}
	id := container(t, image(t), nil, "demo", "--json")
	if code := command(t, "docker", "wait", id); code != "0" {
		t.Errorf("exit %s", code)
	}
}

// The image has time zones, and the CAs that a request to the world needs.
func TestImage_knowsZonesAndCAs(t *testing.T) {
	t.Parallel()
	if out := command(t, "docker", "run", "--rm", "--read-only", image(t), "preview", "--cron", "0 2 * * *", "--timezone", "Asia/Seoul"); !strings.Contains(out, "+09:00") && !strings.Contains(out, "KST") {
		t.Errorf("a zone: %s", out)
	}
	modules := command(t, "go", "version", "-m", "../../bin/image/linux/"+runtime.GOARCH+"/onbeat")
	if !strings.Contains(modules, "x509roots/fallback") || !strings.Contains(modules, "CGO_ENABLED=0") {
		t.Errorf("the program has no CAs, or is not static:\n%s", modules)
	}
}
