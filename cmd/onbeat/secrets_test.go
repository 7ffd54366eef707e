package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// Wherever a user puts a URL with a password by mistake, no error shows the password, and each error still says what is wrong.
func TestErrors_showNoPasswordOfRedis(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const url = "redis://usr:S3CRET@host/0"
	yaml := s.file("plain.yaml", "redis: "+url+"\n")
	field := s.file("field.yaml", "namespace: x\n"+url+": 1\n")
	listed := s.file("list.yaml", "namespace: ["+url+"]\n")
	bad := s.file("bad.jsonl", `{"type":"`+url+`"}`+"\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"instances", "-c", yaml}, "redis"},
		{[]string{"serve", "-c", yaml}, "redis"},
		{[]string{"instances", "-c", field}, "unknown field"},
		{[]string{"instances", "-c", listed}, "namespace"},
		{[]string{url}, "unexpected argument redis://usr:…@host/0"},
		{[]string{"redis://usr:S3CRET@h"}, "unexpected argument redis://usr:…@h"},
		{[]string{"redis://usr:two S3CRET words@h"}, "unexpected argument redis://usr:…@h"},
		{[]string{`redis://usr:"S3CRET'@h`}, "unexpected argument redis://usr:…@h"},
		{[]string{"redis://usr:a@b S3CRET@h"}, "unexpected argument redis://usr:…@h"},
		{[]string{"instances", url}, "unexpected argument"},
		// Without a colon it may be a password in the place of the user.
		{[]string{"instances", "redis://S3CRET@h"}, "unexpected argument redis://…@h"},
		{[]string{"instances", "--namespace", "redis-cluster://S3CRET@h/0"}, `namespace "redis-cluster://…@h/0"`},
		{[]string{"instances", "--namespace", "https://S3CRET@h/x"}, `namespace "https://…@h/x"`},
		{[]string{"instances", "--redis", "redis://S3CRET@127.0.0.1:1"}, "redis://…@127.0.0.1:1: "},
		{[]string{"doctor", "--redis", "redis://S3CRET@127.0.0.1:1"}, "redis://…@127.0.0.1:1: "},
		{[]string{"instances", "--redis", "redis-sentinel://S3CRET@127.0.0.1:1/m"}, "redis-sentinel://…@127.0.0.1:1/m: "},
		{[]string{"lock", "run", "x", "-w", "0", "--redis", "redis://S3CRET@127.0.0.1:1", "--", "true"}, "redis://…@127.0.0.1:1: "},
		{[]string{"instances", "-c", s.file("lone.yaml", "redis: {url: 'redis://S3CRET@h:x'}\n")}, "redis.url"},
		{[]string{"instances", "--" + url}, "unknown flag"},
		{[]string{"instances", "--namespace", url}, `namespace "redis://usr:…@host/0"`},
		{[]string{"instances", "--namespace", `redis://usr:x"S3CRET@host`}, "namespace"},
		{[]string{"instances", "--namespace", "redis://usr:S3CRET" + strings.Repeat("x", 60) + "@host"}, "namespace"},
		{[]string{"instances", "--namespace", "redis://usr:two S3CRET" + strings.Repeat("x", 60) + "@host"}, "namespace"},
		{[]string{"instances", "--config", url}, `config "redis://usr:…@host/0"`},
		{[]string{"serve", "--config", "rediss-sentinel://:S3CRET@a,b/m"}, `config "rediss-sentinel://:…@a,b/m"`},
		{[]string{"instances", "--json=" + url}, "--json"},
		{[]string{"tasks", "list", "--limit", url}, "--limit"},
		{[]string{"instances", "--redis", "file:redis://u:S3CRET@h"}, "redis.url"},
		{[]string{"instances", "--redis", "file:/x/" + url}, "redis.url"},
		{[]string{"instances", "--redis", "postgres://u:S3CRET@h"}, "unknown scheme"},
		{[]string{"instances", "--namespace", "REDIS://u:S3CRET@h"}, "namespace"},
		{[]string{"instances", "--namespace", "http://u:S3CRET@h/x"}, `namespace "http://…@h/x"`},
		{[]string{"instances", "--namespace", "http://u:S3/CRET@h/x"}, "namespace"},
		{[]string{"instances", "--namespace", "https://u:" + strings.Repeat("S3CRET", 13) + "@h/"}, `namespace "https://…"`},
		{[]string{"instances", "--config", "postgres://u:" + strings.Repeat("S3CRET", 13) + "@h/"}, `config "postgres://…"`},
		{[]string{"instances", "--namespace", "https://u:12/S3CRET@h/"}, `namespace "https://…@h/"`},
		{[]string{"instances", "--namespace", "u:S3CRET@h:1"}, `namespace "…@h:1"`},
		{[]string{"instances", "https://u:two S3CRET@h/"}, "unexpected argument https://…@h/ (see"},
		{[]string{"instances", "--https://u:12/S3CRET@h/"}, "unknown flag --https://…@h/ (see"},
		{[]string{"instances", "-c", s.file("bare.yaml", "redis: u:S3CRET@h\n")}, "redis: must be a mapping, not a plain value"},
		{[]string{"instances", "-c", s.file("listen.yaml", "api: {listen: 'https://u:two \"S3CRET@h'}\n")}, ""},
		{[]string{"enqueue", "--file", url}, "file"},
		{[]string{"enqueue", "--file", bad}, "type"},
		{[]string{"enqueue", "--file", bad, "--skip-bad"}, "type"},
		{[]string{"schedules", "apply", url}, "file"},
		{[]string{"preview", "--every", url}, "every"},
	} {
		r := s.run("", c.args...)
		if r.code == 0 && c.want != "type" || !strings.Contains(r.err, c.want) {
			t.Errorf("%q: exit %d, %q does not say %q", c.args, r.code, r.err, c.want)
		}
		if said := strings.ToLower(r.out + r.err); strings.Contains(said, "s3cret") || strings.Contains(said, "cret@") {
			t.Errorf("%q shows the password: %s%s", c.args, r.out, r.err)
		}
	}
}

// The variable and the config disagree about Redis: the error shows which part of each is harmless, and says what to do.
func TestErrors_showWhatStandsBehindAURL(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("c.yaml", "namespace: x\nredis: {url: redis://h}\n")
	r := runWith(t.Context(), testEnv("ONBEAT_REDIS_URL", "file:https://u:S3CRET@h/x"), "", "-c", file, "tasks", "list")
	if strings.Contains(r.err, "S3CRET") || !strings.Contains(r.err, `redis.url "redis://h": ONBEAT_REDIS_URL says "`) || !strings.Contains(r.err, "(unset the variable") {
		t.Error(r.err)
	}
}

func TestLog_showsNoPasswordOfAnError(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	a := newApp(&globals{}, testEnv(), strings.NewReader(""), &said, &said)
	log := a.log(zerolog.InfoLevel, "json")
	log.Error().Err(fmt.Errorf("config: %w", errors.New("redis://u:S3CRET@h"))).Msg("the config cannot be used")
	if !strings.Contains(said.String(), `"error":"config: redis://u:…@h"`) {
		t.Error(said.String())
	}
}
