package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
)

func TestDoctor_judgesWhatRedisSays(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	rdb := srv.Client()
	for _, c := range []struct {
		info         map[string]string
		fsync, save  string
		check, state string
		says         string
	}{
		{map[string]string{"role": "slave", "master_host": "h"}, "", "", "role", Fail, "slave of h"},
		{map[string]string{"role": "master", "connected_slaves": "2"}, "", "", "role", OK, "2 replicas"},
		{map[string]string{"cluster_enabled": "1"}, "", "", "cluster", Fail, "one node of a cluster"},
		{map[string]string{"aof_enabled": "1", "aof_last_write_status": "err"}, "", "", "persistence", Fail, "failed"},
		{map[string]string{"aof_enabled": "1"}, "always", "", "persistence", OK, "no acknowledged write is lost"},
		{map[string]string{"aof_enabled": "1"}, "no", "", "persistence", Warn, "half a minute"},
		{map[string]string{"aof_enabled": "0"}, "", "3600 1", "persistence", Warn, "snapshots only"},
		{map[string]string{"aof_enabled": "1"}, "everysec", "", "persistence", OK, "flushed each second"},
		{map[string]string{"used_memory": "95", "maxmemory": "100"}, "", "", "memory", Warn, "95 B of 100 B"},
		{map[string]string{"used_memory": "50", "maxmemory": "100"}, "", "", "memory", OK, "50 B of 100 B"},
	} {
		for name, value := range map[string]string{"appendfsync": c.fsync, "save": c.save} {
			if value == "" && name == "appendfsync" {
				value = "everysec"
			}
			if err := rdb.ConfigSet(t.Context(), name, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
		d := &doctor{cfg: Config{Redis: rdb}, node: rdb, info: c.info}
		d.role(t.Context())
		d.cluster(t.Context())
		d.persistence(t.Context())
		d.memory(t.Context())
		i := slices.IndexFunc(d.checks, func(x Check) bool { return x.Name == c.check })
		if i < 0 {
			t.Errorf("%v: no check %s", c.info, c.check)
		} else if got := d.checks[i]; got.State != c.state || !strings.Contains(got.Detail, c.says) {
			t.Errorf("%v: %+v, want %s and %q", c.info, got, c.state, c.says)
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"6.2.0": true, "6.0.16": false, "7.0.15": true, "5": false, "7": true, "10.1": true, "x": false} {
		if got := atLeast(version, 6, 2); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
	for n, want := range map[int64]string{5: "5 B", 2048: "2.0 KiB", 3 << 30: "3.0 GiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// Where CONFIG is not allowed, as on a managed Redis, the doctor does not make up what it says.
func TestDoctor_knowsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	rdb := testredis.User(t, testredis.Private(t).Client(), []string{"~*", "&*", "+@all", "-config"})
	for aof, want := range map[string]string{"1": "does not say how often", "0": "does not say whether"} {
		d := &doctor{cfg: Config{Redis: rdb}, node: rdb, info: map[string]string{"aof_enabled": aof}}
		if d.persistence(t.Context()); d.checks[0].State != Warn || !strings.Contains(d.checks[0].Detail, want) {
			t.Errorf("%+v", d.checks)
		}
	}
}

func TestExamine_refusesAClientThatItCannotAsk(t *testing.T) {
	t.Parallel()
	r, err := Examine(t.Context(), Config{Redis: struct{ *redis.Client }{testredis.Client(t)}, URL: "redis://h"})
	if err != nil || !r.Has(Fail) {
		t.Errorf("%+v, %v", r, err)
	}
}
