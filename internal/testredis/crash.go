package testredis

import (
	"os"
	"path/filepath"
	"testing"
)

// Disk is a real Redis with an append-only file, on a simulated machine that can crash. It belongs to one test.
type Disk struct {
	*Server

	log string // the part of the append-only file that grows
}

// OnDisk starts a Disk with the given appendfsync. Without a redis-server on PATH the test is skipped, or fails if
// ONBEAT_REQUIRE_REAL=1.
func OnDisk(t testing.TB, fsync string) *Disk {
	t.Helper()
	needProgram(t)
	dir := t.TempDir()
	s := member(t, "--dir", dir, "--appendonly", "yes", "--appendfsync", fsync, "--auto-aof-rewrite-percentage", "0")
	log := filepath.Join(dir, "appendonlydir", "appendonly.aof.1.incr.aof")
	if _, err := os.Stat(log); err != nil {
		log = filepath.Join(dir, "appendonly.aof") // before Redis 7
	}
	return &Disk{Server: s, log: log}
}

// Written returns how many bytes Redis has handed to the kernel. With everysec, all of them are on disk at most a second
// later. With always, they are on disk before any caller gets an answer.
func (d *Disk) Written() int64 {
	d.t.Helper()
	info, err := os.Stat(d.log)
	must(d.t, err)
	return info.Size()
}

// Crash kills Redis and removes from its file what was written since. Killing the process alone loses nothing that the
// kernel has; a machine that crashes loses what is not yet on disk.
func (d *Disk) Crash(since int64) {
	d.t.Helper()
	d.Kill()
	must(d.t, os.Truncate(d.log, since))
}
