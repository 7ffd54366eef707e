package queue

import (
	"testing"
)

// The missing right is read from the error of Redis, which each version words differently.
func TestRule_readsWhatEachRedisSays(t *testing.T) {
	t.Parallel()
	q := &Queue{keys: Partition{Namespace: "n"}.Keys()}
	due := try{"zadd", []any{"ZADD", "onbeat:{n}:due:a|normal|b", "x", "y"}}
	for _, c := range []struct {
		said string
		role Role
		try  try
		want string
	}{
		{"NOPERM this user has no permissions to access one of the keys used as arguments", AsProducer, due, "~onbeat:{n}:due:*"},
		{"NOPERM No permissions to access a key", AsProducer, due, "~onbeat:{n}:due:*"},
		{"NOPERM No permissions to access a key", AsInstance, due, "~onbeat:{n}:*"},
		{"NOPERM this user has no permissions to access one of the channels used as arguments", AsProducer,
			try{"publish", []any{"PUBLISH", "onbeat:{n}:wake", ""}}, "&onbeat:{n}:wake"},
		{"NOPERM No permissions to access a channel", AsProducer, try{"publish", []any{"PUBLISH", "onbeat:{n}:wake:x", ""}}, "&onbeat:{n}:wake:*"},
		{"NOPERM this user has no permissions to run the 'zadd' command", AsProducer, due, "+zadd"},
		{"NOPERM this user has no permissions to run the 'zadd' command or its subcommand", AsInstance, due, "+zadd"},
		{"NOPERM this user has no permissions to run the 'client|setname' command", AsReader, due, "+client|setname"},
		{"NOPERM this user has no permissions to run the 'client' command or its subcommand", AsReader, try{}, "+client|setname"},
		{"NOPERM this user has no permissions to run the 'script' command or its subcommand", AsInstance, try{name: "script|load"}, "+script|load"},
		{"NOPERM User app has no permissions to run the 'zadd' command", AsInstance, due, "+zadd"},
	} {
		if got := q.rule(c.role, c.try, c.said); got != c.want {
			t.Errorf("%s: %s, want %s", c.said, got, c.want)
		}
	}
}
