// Package yaml has no code but this test of its files.
package yaml

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/onbeat/onbeat/examples/internal/program"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestMain(m *testing.M) { testredis.Main(m) }

const key = "SHOP_KEY=a key of this test, long enough"

func TestReceivers_takeWhatIsSignedAndRefuseTheRest(t *testing.T) {
	t.Parallel()
	python, node := interpreter(t, "python3"), interpreter(t, "node")
	config := read(t, "onbeat.yaml")
	var receivers []*program.Process
	for _, r := range []struct{ port, file, program string }{{"8101", "receiver.py", python}, {"8102", javaScript(t, "receiver.ts"), node}} {
		port := free(t)
		config = strings.ReplaceAll(config, r.port, port)
		p := program.Start(t, r.program, []string{key, "PORT=" + port}, r.file)
		p.Says("listening", 1)
		forged(t, p, "http://127.0.0.1:"+port+"/warm")
		receivers = append(receivers, p)
	}
	file := filepath.Join(t.TempDir(), "onbeat.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(config, "redis://127.0.0.1:6379/0", testredis.Private(t).URL())+"api: {listen: \"off\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	onbeat := program.Start(t, program.Build(t, "../../cmd/onbeat"), []string{key}, "serve", "--config", file)
	receivers[0].Says("warming home", 2)
	receivers[1].Says("warming basket", 2)
	onbeat.Stop()
	for _, p := range receivers {
		if n := p.Count("refused"); n != 2 { // those of this test
			t.Errorf("%d requests were refused, want 2", n)
		}
	}
}

// forged sends a request without a signature, and a request with a signature of another key.
func forged(t *testing.T, p *program.Process, url string) {
	t.Helper()
	for n, header := range []http.Header{{}, {"Webhook-Id": {"1"}, "Webhook-Timestamp": {"4102444800"}, "Webhook-Signature": {"v1,bm90IGl0"}}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"page": "evil"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%v was answered with %d", header, answer.StatusCode)
		}
		p.Says("refused", n+1)
	}
}

func interpreter(t *testing.T, name string) string {
	t.Helper()
	file, err := exec.LookPath(name)
	if err != nil && os.Getenv("ONBEAT_REQUIRE_REAL") != "1" {
		t.Skipf("there is no %s", name)
	} else if err != nil {
		t.Fatal(err)
	}
	return file
}

// javaScript takes the types out of a file, for a Node that cannot.
func javaScript(t *testing.T, name string) string {
	t.Helper()
	out := api.Transform(read(t, name), api.TransformOptions{Loader: api.LoaderTS})
	if len(out.Errors) > 0 {
		t.Fatal(out.Errors)
	}
	file := filepath.Join(t.TempDir(), "receiver.mjs")
	if err := os.WriteFile(file, out.Code, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}
