package testredis

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Replicated starts a primary and a replica that has all data of the primary. They belong to one test. Without a
// redis-server on PATH the test is skipped, or fails if ONBEAT_REQUIRE_REAL=1.
func Replicated(t testing.TB, args ...string) (primary, replica *Server) {
	t.Helper()
	needProgram(t)
	primary = member(t, args...)
	replica = follower(t, primary, args...)
	awaitReplica(t, replica)
	return primary, replica
}

// follower starts a replica of a server.
func follower(t testing.TB, primary *Server, args ...string) *Server {
	t.Helper()
	host, port, err := net.SplitHostPort(primary.Addr())
	must(t, err)
	return member(t, append([]string{"--replicaof", host, port}, args...)...)
}

// needProgram skips or fails a test that cannot have a group of servers here.
func needProgram(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		withoutReal(t, err)
	}
}

// member starts one server of a group.
func member(t testing.TB, args ...string) *Server {
	t.Helper()
	own := []string{"--dir", t.TempDir(), "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}
	s, err := privateOn(t, children{}, append(own, args...))
	must(t, err)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal("testredis:", err)
	}
}

var errNoLink = errors.New("it does not follow its primary yet")

// awaitReplica waits until a replica has all data of its primary.
func awaitReplica(t testing.TB, s *Server) {
	t.Helper()
	rdb := s.Client()
	Eventually(t, startTimeout, func() error { return follows(t.Context(), rdb) }, "the replica at %s follows", s.Addr())
}

func follows(ctx context.Context, rdb *redis.Client) error {
	info, err := rdb.InfoMap(ctx, "replication").Result()
	if err != nil {
		return err
	}
	for _, section := range info {
		if section["role"] == "slave" && section["master_link_status"] == "up" {
			return nil
		}
	}
	return errNoLink
}
