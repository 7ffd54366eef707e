package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A flag decides which archive is read; without it the variable and the config, which must agree. No password is shown.
func TestArchiveOf_saysWhichArchive(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := s.TempDir()
	file := s.file("c.yaml", "namespace: "+s.ns+"\nredis: {url: \""+s.url+"\"}\narchive: {url: \"postgres://u:S3CRET@h/d\"}\n")
	r := runWith(t.Context(), testEnv("ONBEAT_ARCHIVE", "postgres://u:S3CRET2@h/other"), "", "-c", file, "tasks", "list")
	if r.code != exitAsked || strings.Contains(r.err, "S3CRET") || !strings.Contains(r.err, `archive.url "postgres://…@h/d": ONBEAT_ARCHIVE says "postgres://…@h/other"`) {
		t.Errorf("%+v", r)
	}
	own := "sqlite://" + filepath.Join(dir, "archive.db")
	hidden := filepath.Join(dir, "url")
	if err := os.WriteFile(hidden, []byte(own+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--archive", own, "doctor"}, {"--archive", "file:" + hidden, "doctor"}} {
		if r := s.run("", args...); !strings.Contains(r.out, "there are none yet") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	r = s.run("", "--archive", "mysql://u:S3CRET@h/d", "tasks", "list")
	if r.code != exitAsked || strings.Contains(r.err, "S3CRET") || !strings.Contains(r.err, "archive.url") {
		t.Errorf("%+v", r)
	}
	r = s.run("", "--archive", "postgres://u:S3CRET@127.0.0.1:1/d", "tasks", "show", "nothing")
	if r.code != 1 || strings.Contains(r.err, "S3CRET") || !strings.Contains(r.err, "127.0.0.1:1") {
		t.Errorf("%+v", r)
	}
}
