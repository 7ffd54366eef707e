package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/testredis"
)

func TestDoctor_warnsOfAPasswordThatOthersCanRead(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	s := &shell{T: t, ns: testredis.Namespace(t), url: srv.URL(), rdb: srv.Client()}
	if err := s.rdb.Do(t.Context(), "ACL", "SETUSER", "shop", "on", ">hunter2", "~*", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	written := strings.Replace(srv.URL(), "redis://", "redis://shop:hunter2@", 1)
	named := strings.Replace(srv.URL(), "redis://", "redis://shop:${SECRET}@", 1)
	for _, c := range []struct {
		url   string
		mode  os.FileMode
		warns bool
	}{{written, 0o644, true}, {written, 0o640, true}, {written, 0o600, false}, {named, 0o644, false}} {
		name := s.file("c.yaml", "redis: {url: '"+c.url+"'}\nnamespace: "+s.ns+"\n")
		if err := os.Chmod(name, c.mode); err != nil {
			t.Fatal(err)
		}
		r := runWith(t.Context(), testEnv("SECRET", "hunter2"), "", "doctor", "-c", name)
		want := fmt.Sprintf("mode %04o", c.mode)
		if r.code != 0 || strings.Contains(r.out, want) != c.warns || strings.Contains(r.out, "hunter2") {
			t.Errorf("%s with mode %o: exit %d\n%s%s", c.url, c.mode, r.code, r.out, r.err)
		}
	}
}

func TestServe_warnsOfWhatIsNotSafe(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	name := s.file("c.yaml", "redis: {url: 'rediss://:hunter2@127.0.0.1:1?skip_verify=true'}\nnamespace: "+s.ns+"\n")
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	log := starts(t, testEnv(), "-c", name)
	for _, want := range []string{"tls_ca", "skip_verify", "mode 0644"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}
	if strings.Contains(log, "hunter2") {
		t.Error("the log has the password")
	}
}

func TestCautions_knowTheKeyOfACertificate(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	key := s.file("k.pem", "")
	for mode, want := range map[os.FileMode]int{0o600: 0, 0o604: 1, 0o640: 1} {
		if err := os.Chmod(key, mode); err != nil {
			t.Fatal(err)
		}
		if got := (target{url: "rediss://h?tls_key=" + key}).cautions(); len(got) != want {
			t.Errorf("mode %o: %+v", mode, got)
		}
	}
}

func TestConnect_saysWhatIsWrongWithTLS(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
	stranger.StartTLS()
	t.Cleanup(stranger.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	for url, want := range map[string]string{
		strings.Replace(stranger.URL, "https", "rediss", 1): "tls_ca",
		strings.Replace(plain.URL, "http", "rediss", 1):     "redis://",
	} {
		s.fails(1, []string{"tasks", "list", "--redis", url}, want)
		if r := s.run("", "serve", "--redis", url); r.code != 1 || !strings.Contains(r.err, want) {
			t.Errorf("serve: exit %d: %s", r.code, r.err)
		}
	}
}
