package testredis

import (
	"context"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// User returns a client of a new user that has only these rules ("~key*", "&channel*", "+command"). When the test ends, the
// user is deleted.
func User(t testing.TB, admin *redis.Client, rules []string, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	name := "user-" + strings.TrimPrefix(Namespace(t), "test-")
	args := []any{"ACL", "SETUSER", name, "reset", "resetchannels", "on", ">secret"} // with Redis 6.2 a new user may use all channels
	for _, rule := range rules {
		args = append(args, rule)
	}
	if err := admin.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { admin.Do(context.Background(), "ACL", "DELUSER", name) })
	opts := *admin.Options()
	opts.Username, opts.Password = name, "secret"
	for _, f := range change {
		f(&opts)
	}
	c := redis.NewClient(&opts)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
