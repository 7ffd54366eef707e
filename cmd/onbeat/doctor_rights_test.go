package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/doctor"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// as returns a shell whose user has the rights of a role in its namespace, except some.
func (s *shell) as(role queue.Role, without ...string) *shell {
	s.Helper()
	rules := strings.Fields(queue.ACL(role, queue.Partition{Namespace: s.ns}, false))
	rules = slices.DeleteFunc(rules, func(r string) bool { return slices.Contains(without, r) })
	opts := testredis.User(s, testredis.Real(s), rules).Options()
	return &shell{T: s.T, ns: s.ns, url: "redis://" + opts.Username + ":secret@" + opts.Addr, rdb: s.rdb}
}

// A user without the right to make a connection, or to PING, sees the table with the right in it.
func TestDoctor_showsItsTableToWhoMayNotConnect(t *testing.T) {
	t.Parallel()
	for _, right := range []string{"+client|setname", "+ping"} {
		s := newShell(t).as(queue.AsInstance, right)
		if c := diagnose(t, s, 1).of("rights"); c.State != doctor.Fail || !strings.Contains(c.Detail, "lacks "+right) || !strings.Contains(c.Hint, right) {
			t.Errorf("%s: %+v", right, c)
		}
	}
}

// The doctor does not tell a reader's or a producer's admin to give it the rights of an instance.
func TestDoctor_saysThatTheUserIsNotOfAnInstance(t *testing.T) {
	t.Parallel()
	for _, role := range []queue.Role{queue.AsProducer, queue.AsReader} {
		s := newShell(t).as(role)
		c := diagnose(t, s, 1).of("rights")
		if want := "this is not the user of an instance (fine for a producer, a reader or locks); for an instance: ACL SETUSER "; c.State != doctor.Fail ||
			!strings.HasPrefix(c.Hint, want) {
			t.Errorf("%s: %+v", role, c)
		}
	}
}

// A user that lacks a right gets a hint to the page of rights. Only a user without a valid password gets a hint to the password.
func TestCommands_hintAtTheRights(t *testing.T) {
	t.Parallel()
	reader := newShell(t).as(queue.AsReader)
	producer := newShell(t).as(queue.AsProducer)
	producer.must("enqueue", "mine.own", "--id", "x", "--unique", "u")
	for _, r := range []ran{
		reader.run("", "enqueue", "mine.own"), producer.run("", "tasks", "list"), producer.run("", "tasks", "cancel", "x"),
		newShell(t).as(queue.AsProducer, "+client|setname").run("", "enqueue", "mine.own"),
	} {
		reader.failed(r, 1, "without a right", "redis denies access", "docs/rights.md")
		if strings.Contains(r.err, "password") {
			t.Errorf("%s", r.err)
		}
	}
	s := newShell(t).as(queue.AsInstance, "+publish")
	if r := s.run("", "serve"); r.code != 1 || strings.Count(r.err, "docs/rights.md") != 1 || strings.Contains(r.err, "password") {
		t.Errorf("serve: %+v", r)
	}
	reader.url = strings.Replace(reader.url, ":secret@", ":wrong@", 1)
	reader.fails(1, []string{"enqueue", "mine.own"}, "WRONGPASS", "check the user and password")
}
