package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/embedded"
)

// redisServer is a redis-server.
type redisServer struct {
	*embedded.Server
	rdb *redis.Client
	job *job
	dir string
}

// startRedis starts one that keeps everything in memory, or also writes an append-only file each second.
func startRedis(ctx context.Context, j *job) (r *redisServer, err error) {
	r = &redisServer{job: j}
	opts := embedded.Options{NoPassword: true}
	if j.Params.Store == "aof" {
		if r.dir, err = os.MkdirTemp("", "onbeat-bench-redis-"); err != nil {
			return nil, err
		}
		opts.Dir = r.dir
	}
	if j.Peer == "bullmq" && j.Params.Tuned { // Redis then looks more often at the timeouts of blocking commands, by which BullMQ waits
		opts.Args = []string{"--hz", "500", "--dynamic-hz", "no"}
	}
	if r.Server, err = embedded.Start(ctx, opts); err != nil {
		return nil, err
	}
	r.rdb = redis.NewClient(&redis.Options{Addr: r.Addr(), PoolSize: 1, MaxRetries: -1})
	return r, nil
}

func (r *redisServer) stop() {
	if r.job.Profile != "" { // how often each command was called, with those inside scripts, and how long they took

		if text, err := r.rdb.Info(context.Background(), "commandstats").Result(); err == nil {
			_ = os.WriteFile(r.job.file("commandstats.txt"), []byte(text), 0o644)
		}
	}
	_ = errors.Join(r.rdb.Close(), r.Close())
	if r.dir != "" {
		_ = os.RemoveAll(r.dir)
	}
}

// read reads what the server has used. Its memory is all that it allocated but for the buffers of connections and of the
// append-only file, and the scripts it keeps. (Its own "dataset" figure also leaves out the table of keys, a good part of the
// memory of a peer with a key a task.)
func (r *redisServer) read(ctx context.Context) (used, error) { return readRedis(ctx, r.rdb) }

func readRedis(ctx context.Context, rdb *redis.Client) (used, error) {
	info, err := rdb.Info(ctx, "cpu", "stats", "memory").Result()
	v := map[string]float64{}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		v[name], _ = strconv.ParseFloat(value, 64)
	}
	return used{
		cpu:      1e6 * (v["used_cpu_user"] + v["used_cpu_sys"] + v["used_cpu_user_children"] + v["used_cpu_sys_children"]),
		commands: v["total_commands_processed"],
		bytes:    v["used_memory"] - v["mem_clients_normal"] - v["mem_aof_buffer"] - v["used_memory_scripts_eval"],
	}, err
}
