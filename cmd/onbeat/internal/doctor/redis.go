package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// nodeTime is how long a node may take for a short answer.
const nodeTime = 3 * time.Second

// server finds the node that holds the namespace, and reads which server it runs.
func (d *doctor) server(ctx context.Context) {
	d.info = map[string]string{}
	switch rdb := d.cfg.Redis.(type) {
	case *redis.Client:
		d.node = rdb
	case *redis.ClusterClient:
		node, err := rdb.MasterForKey(ctx, d.q.Keys().Meta)
		if err != nil {
			d.fail("server", "is every slot of the cluster served?", "%v", err)
			return
		}
		d.node = node
	default:
		d.fail("server", "pass a *redis.Client or a *redis.ClusterClient", "the client is a %T, which cannot be checked", rdb)
		return
	}
	soon, done := context.WithTimeout(ctx, nodeTime)
	defer done()
	text, err := d.node.Info(soon).Result()
	if err = store.Classify(err); store.Retryable(err) && d.number > 0 { // of no partition: the client has just heard from it
		d.fail("server", "bring the node back, or fail over to its replica: what lies there waits", "%s does not answer: %v", d.node.Options().Addr, err)
		d.node = nil
		return
	}
	if err != nil {
		d.warn("server", d.cure(err, "allow the user INFO, to let the doctor see more"), "INFO: %v", err)
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			d.info[name] = value
		}
	}
	name, version := "redis", d.info["redis_version"]
	if v := d.info["valkey_version"]; v != "" {
		d.ok("server", "valkey %s", v)
		return
	}
	switch {
	case version == "":
		d.warn("server", "", "it reports no version")
	case !atLeast(version, 6, 2):
		d.fail("server", "onbeat needs Redis 6.2 or newer, or Valkey", "%s %s", name, version)
	default:
		d.ok("server", "%s %s", name, version)
	}
}

func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	a, _ := strconv.Atoi(parts[0])
	b := 0
	if len(parts) > 1 {
		b, _ = strconv.Atoi(parts[1])
	}
	return a > major || a == major && b >= minor
}

// role checks that the node is a primary, and counts its replicas.
func (d *doctor) role(context.Context) {
	replicas := d.info["connected_slaves"]
	have, _ := strconv.Atoi(replicas)
	switch role := d.info["role"]; {
	case role == "":
	case role != "master":
		d.fail("role", admin.PrimaryHint(d.cfg.URL), "%s of %s", role, d.info["master_host"])
	case have < d.cfg.Durability.Replicas && d.cfg.Durability.Strict:
		d.fail("role", "add replicas, or lower durability.replicas: until then no task begins",
			"primary with %d replicas, and strict durability asks for %d", have, d.cfg.Durability.Replicas)
	case have < d.cfg.Durability.Replicas:
		d.warn("role", "add replicas, or lower durability.replicas: until then only the primary has the writes",
			"primary with %d replicas, and durability asks for %d", have, d.cfg.Durability.Replicas)
	case have == 0:
		d.ok("role", "primary without replicas")
	default:
		d.ok("role", "primary with %s replicas; a failover may lose writes that they have not received yet", replicas)
	}
}

// writes tries a write like the first one of an instance.
func (d *doctor) writes(ctx context.Context) {
	err := d.q.TryWrite(ctx)
	d.full = errors.Is(err, task.ErrFull)
	switch {
	case err == nil:
		d.ok("writes", "Redis accepts them")
	case strings.Contains(err.Error(), "NOREPLICAS"):
		d.fail("writes", "min-replicas-to-write asks for more replicas than are connected and keep up: add replicas, or lower it", "%v", err)
	case d.full:
		d.fail("writes", "raise maxmemory", "%v", err)
	case isOfDisk(err):
		d.fail("writes", "Redis cannot save to its disk: is it full? See its log", "%v", err)
	case d.bare && store.LacksRight(err):
		d.warn("writes", "pass --namespace: this user may write only in its namespace, or not at all", "%v", err)
	default:
		d.fail("writes", cmp.Or(d.cure(err, ""), "no instance can register with this user"), "%v", err)
	}
}

// isOfDisk reports whether err is the answer of a Redis that cannot save to its disk. It then refuses writes, and PING.
func isOfDisk(err error) bool { return err != nil && strings.Contains(err.Error(), "MISCONF") }

// configOf reads a setting of Redis. It returns "" and false if the user may not run CONFIG.
func (d *doctor) configOf(ctx context.Context, name string) (string, bool) {
	m, err := d.node.ConfigGet(ctx, name).Result()
	v, ok := m[name]
	return v, err == nil && ok
}

// configHint helps where the user may not ask for a setting.
const configHint = "allow the user CONFIG GET, or ask who runs this Redis"

// persistence reports what a crash of Redis may lose.
func (d *doctor) persistence(ctx context.Context) {
	if d.info["aof_enabled"] == "" {
		return
	}
	save, known := d.configOf(ctx, "save")
	fsync, said := d.configOf(ctx, "appendfsync")
	const hint = "set appendonly yes and appendfsync everysec"
	switch {
	case d.info["aof_last_write_status"] == "err", d.info["rdb_last_bgsave_status"] == "err":
		d.fail("persistence", "see the log of Redis: disk full?", "the last write to disk failed")
	case d.info["aof_enabled"] == "1" && fsync == "no":
		d.warn("persistence", hint, "append-only, flushed when the operating system decides: a crash of the machine may lose half a minute")
	case d.info["aof_enabled"] == "1" && fsync == "always":
		d.ok("persistence", "append-only, flushed with each write: no acknowledged write is lost")
	case d.info["aof_enabled"] == "1" && !said:
		d.warn("persistence", configHint, "append-only; Redis does not say how often it flushes to disk")
	case d.info["aof_enabled"] == "1":
		d.ok("persistence", "append-only, flushed each second: a crash of the machine may lose the last second")
	case !known:
		d.warn("persistence", configHint, "not append-only; Redis does not say whether it takes snapshots")
	case save == "":
		d.warn("persistence", hint, "none: a restart of Redis loses every schedule and task")
	default:
		d.warn("persistence", hint, "snapshots only (save %q): a crash loses everything since the last one", save)
	}
}

// memory checks that Redis drops no keys, and that it has room.
func (d *doctor) memory(ctx context.Context) {
	policy := d.info["maxmemory_policy"]
	if v, ok := d.configOf(ctx, "maxmemory-policy"); ok {
		policy = v
	}
	used, _ := strconv.ParseInt(d.info["used_memory"], 10, 64)
	most, _ := strconv.ParseInt(d.info["maxmemory"], 10, 64)
	if policy != "" && policy != "noeviction" {
		d.fail("eviction", "set maxmemory-policy noeviction: a full Redis then refuses writes instead of dropping keys",
			"%s: Redis may drop keys, and with them tasks and schedules", policy)
	} else if policy != "" {
		d.ok("eviction", "noeviction")
	}
	switch {
	case used == 0:
	case most == 0:
		d.ok("memory", "%s used, no limit", bytesText(used))
	case d.full, used >= most:
		d.fail("memory", "raise maxmemory, or keep less",
			"%s of %s used: Redis accepts no new tasks and schedules", bytesText(used), bytesText(most))
	case used > most*9/10:
		d.warn("memory", "raise maxmemory, or keep less", "%s of %s used", bytesText(used), bytesText(most))
	default:
		d.ok("memory", "%s of %s used", bytesText(used), bytesText(most))
	}
}

func bytesText(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// scripts checks that Redis accepts every script.
func (d *doctor) scripts(ctx context.Context) {
	all := store.Scripts()
	for _, s := range all {
		if err := s.Load(ctx, d.node); err != nil {
			d.fail("scripts", d.cure(err, "the user needs SCRIPT LOAD, EVALSHA and EVAL"), "%s: %v", s.Name, err)
			return
		}
	}
	d.ok("scripts", "%d load", len(all))
}
