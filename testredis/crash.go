package testredis

import (
	"os"
	"path/filepath"
	"testing"
)

// Disk is a real Redis with an append-only file, on a machine that can crash. It belongs to one test.
type Disk struct {
	*Server

	log string // the part of the append-only file that grows
}

// OnDisk starts one with the given appendfsync. The test is skipped, or fails if ONBEAT_REQUIRE_REAL=1, where there is
// no redis-server on PATH.
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

// Written is how much it has handed to the kernel. All of it is on disk a second later at the latest with everysec, and
// before anybody is answered with always.
func (d *Disk) Written() int64 {
	d.t.Helper()
	info, err := os.Stat(d.log)
	must(d.t, err)
	return info.Size()
}

// Crash kills it and takes from its file what was written since: killing a process alone loses nothing that the kernel
// has, and a machine that crashes loses what is not on disk yet.
func (d *Disk) Crash(since int64) {
	d.t.Helper()
	d.Kill()
	must(d.t, os.Truncate(d.log, since))
}
