package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Paths in a config are relative to the config's folder, wherever the program starts.
func TestConfig_namesFilesInItsFolder(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("c.yaml", "redis: {url: 'file:redis.url'}\nnamespace: "+s.ns+"\n")
	if err := urlFile(filepath.Join(filepath.Dir(file), "redis.url")).write(s.url); err != nil {
		t.Fatal(err)
	}
	if r := runWith(t.Context(), testEnv(), "", "schedules", "list", "-c", file); r.code != 0 || !strings.Contains(r.out, s.ns) {
		t.Errorf("%+v", r)
	}
	ca := filepath.Join(filepath.Dir(file), "my ca.pem")
	for _, redis := range []string{"{url: 'rediss://h', tls_ca: my ca.pem}", "{url: 'rediss://h?db=1&tls_ca=my+ca.pem'}"} {
		file := s.write(filepath.Join(filepath.Dir(file), "tls.yaml"), "redis: "+redis+"\nnamespace: x\n")
		s.fails(2, []string{"schedules", "list", "-c", file}, `redis.tls_ca "`+ca+`": no such file`)
	}
	file = s.file("bare.yaml", "namespace: x\n")
	r := runWith(t.Context(), testEnv("ONBEAT_REDIS_URL", "file:redis.url"), "", "schedules", "list", "-c", file)
	s.failed(r, 2, "of the environment", `redis.url "file:redis.url": no such file`) // as on the command line
}
