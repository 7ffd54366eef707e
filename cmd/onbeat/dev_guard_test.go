package main

import (
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
)

func TestDev_letsInNobodyButItsUser(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]string{"redis-server": nil, "in-process": {"--in-process"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "redis-server" {
				needServer(t)
			}
			dir := t.TempDir()
			p := startProgram(t, dir, nil, append([]string{"dev", "--allow-exec"}, more...)...)
			said := p.says("Try in another terminal")
			whole := urlOf(t, dir, said)
			u, err := url.Parse(whole)
			if err != nil {
				t.Fatal(err)
			}
			password, _ := u.User.Password()
			stranger := redis.NewClient(&redis.Options{Addr: u.Host})
			defer stranger.Close()
			if err := stranger.Set(t.Context(), "k", "v", 0).Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
				t.Errorf("without the password: %v", err)
			}
			file := filepath.Join(dir, ".onbeat", "redis.url")
			if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
				t.Errorf("the file with the URL: %v, %v", info.Mode(), err)
			}
			awaitHeartbeat(t, clientOf(t, dir, said))
			beside := startProgram(t, dir, nil, "schedules", "list", "--redis", "file:.onbeat/redis.url", "--namespace", "dev")
			if code := beside.exit(20 * time.Second); code != 0 || !strings.Contains(beside.out.String(), "heartbeat") {
				t.Errorf("a command beside it: exit %d: %s%s", code, beside.out.String(), beside.errs.String())
			}
			p.interrupt()
			p.exit(20 * time.Second)
			if text := p.out.String() + p.errs.String(); password == "" || strings.Contains(text, password) {
				t.Errorf("it printed its password %q: %s", password, text)
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("the file with the URL is left")
			}
		})
	}
}

// evilConfig is a config whose task leaves a mark.
const evilConfig = `namespace: dev
schedules:
  - {name: evil, every: 100ms, task: exec, payload: {command: [touch, pwned]}}
`

func TestDev_usesNoConfigOfAnother(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no owner and no mode here")
	}
	for name, c := range map[string]struct {
		plant func(dir, elsewhere string) error
		want  string
	}{
		"a file that others may write to": {func(dir, _ string) error {
			return os.Chmod(filepath.Join(dir, "dev.yaml"), 0o666)
		}, "others may write to it"},
		"a folder that others may write to": {func(dir, _ string) error { return os.Chmod(dir, 0o777) }, "others may write to it"},
		"a link": {func(dir, elsewhere string) error {
			if err := os.Remove(filepath.Join(dir, "dev.yaml")); err != nil {
				return err
			}
			return os.Symlink(elsewhere, filepath.Join(dir, "dev.yaml"))
		}, "is a symbolic link"},
		"a file of another":   {func(dir, _ string) error { return os.Chown(filepath.Join(dir, "dev.yaml"), 12345, 12345) }, "belongs to user 12345"},
		"a folder of another": {func(dir, _ string) error { return os.Chown(dir, 12345, 12345) }, "belongs to user 12345"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "evil.yaml")
			if err := os.Mkdir(filepath.Join(dir, ".onbeat"), 0o700); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{filepath.Join(dir, ".onbeat", "dev.yaml"), elsewhere} {
				if err := os.WriteFile(file, []byte(evilConfig), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.plant(filepath.Join(dir, ".onbeat"), elsewhere); os.IsPermission(err) {
				t.Skip("only root can give a file away")
			} else if err != nil {
				t.Fatal(err)
			}
			p := startProgram(t, dir, nil, "dev", "--in-process", "--allow-exec")
			for end := time.Now().Add(30 * time.Second); !p.hasExited() && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				if strings.Contains(p.out.String(), "Try in another terminal") {
					t.Error("it runs")
					p.interrupt()
					break
				}
			}
			if code := p.exit(20 * time.Second); code != exitAsked {
				t.Errorf("exit %d, want %d", code, exitAsked)
			}
			if text := p.errs.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, c.want) || !strings.Contains(text, "(") {
				t.Errorf("stderr = %q, want one line that says %q", text, c.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
				t.Error("a command of another was run")
			}
		})
	}
}

func TestDev_overwritesNothingThroughLinks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".gitignore", "redis.url", "onbeat-redis.lock"} {
		dir, precious := t.TempDir(), filepath.Join(t.TempDir(), "precious")
		if err := os.WriteFile(precious, []byte("dear diary"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, ".onbeat"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(precious, filepath.Join(dir, ".onbeat", name)); err != nil {
			t.Skip("no links here:", err)
		}
		p := startProgram(t, dir, nil, "dev")
		for end := time.Now().Add(patience); !strings.Contains(p.out.String(), "Try in another") && p.errs.String() == "" && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		_ = p.Process.Signal(os.Interrupt)
		p.exit(20 * time.Second)
		if text, err := os.ReadFile(precious); string(text) != "dear diary" || err != nil {
			t.Errorf("%s: what it led to holds %q, %v", name, text, err)
		}
	}
}

func TestDev_runsWhereNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "c.yaml"), []byte("namespace: dev\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, dir, nil, "dev", "--in-process", "-c", "c.yaml", "--dir", "c.yaml/x")
	file := devURL.FindStringSubmatch(p.says("Try in another terminal"))
	if file == nil || !filepath.IsAbs(file[1]) {
		t.Fatalf("it names no file: %s", p.out.String())
	}
	if _, err := redisURL("file:" + file[1]); err != nil {
		t.Error(err)
	}
	p.interrupt()
	p.exit(20 * time.Second)
	if _, err := os.Stat(filepath.Dir(file[1])); err == nil {
		t.Errorf("%s is left", filepath.Dir(file[1]))
	}
}

func TestRedis_mayBeInAFile(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("redis.url", s.url+"\n")
	for name, args := range map[string][]string{
		"flag":   {"--redis", "file:" + file},
		"config": {"-c", s.file("c.yaml", "redis: {url: 'file:"+file+"'}\n")},
	} {
		r := runWith(t.Context(), testEnv(), "", append([]string{"schedules", "list", "-n", s.ns}, args...)...)
		if r.code != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	two := s.file("two.url", "redis://:hunter2@127.0.0.1:1/0\nredis://:hunter2@127.0.0.1:2/0\n")
	for name, want := range map[string]string{"nowhere": "no such file", two: "does not hold one URL", t.TempDir(): "is not a regular file"} {
		r := runWith(t.Context(), testEnv(), "", "schedules", "list", "-n", s.ns, "--redis", "file:"+name)
		s.failed(r, exitAsked, name, "redis.url", want)
		if strings.Contains(r.err, "hunter2") {
			t.Errorf("%s: the password is shown: %s", name, r.err)
		}
	}
}

// A dev that others can reach has a token: a token of the config, or one that dev makes.
func TestDev_makesATokenWhereOthersReachIt(t *testing.T) {
	t.Parallel()
	const address = "0.0.0.0:8080"
	a := func() *app {
		return newApp(&globals{}, testEnv("ONBEAT_DEV_LISTEN", address), nil, io.Discard, io.Discard)
	}
	open, own := &config.File{}, &config.File{}
	own.API.Tokens = []config.Token{{Name: "mine", Role: "viewer", Env: "MINE"}}
	asked := a()
	token := (&devCmd{}).listen(asked, open)
	if len(token) < config.LeastSecret || open.API.Listen != address || len(open.API.Tokens) != 1 {
		t.Fatalf("%q, %+v", token, open.API)
	}
	if secret, err := open.API.Tokens[0].Secret(asked.env); secret != token || err != nil {
		t.Errorf("it prints %q, and takes %q: %v", token, secret, err)
	}
	if token := (&devCmd{}).listen(a(), own); token != "" || own.API.Tokens[0].Name != "mine" || own.API.Listen != address {
		t.Errorf("with a token of the config: %q, %+v", token, own.API)
	}
	local := &config.File{}
	if token := (&devCmd{Listen: "127.0.0.1:0"}).listen(a(), local); token != "" || local.API.Listen != "127.0.0.1:0" || len(local.API.Tokens) != 0 {
		t.Errorf("on this machine alone: %q, %+v", token, local.API)
	}
}
