package onbeat_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// Redis may refuse a command that a client sends as it connects. Then no other command is tried, and that one is named.
func TestRights_ofTheConnectionAreNamed(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	for _, role := range []queue.Role{queue.AsInstance, queue.AsProducer, queue.AsReader} {
		p := queue.Partition{Namespace: testredis.Namespace(t)}
		all := strings.Fields(queue.ACL(role, p, true))
		nameless := slices.DeleteFunc(slices.Clone(all), func(r string) bool { return r == "+client|setname" })
		for want, rdb := range map[string]*redis.Client{
			"+client|setname": testredis.User(t, admin, nameless, func(o *redis.Options) { o.ClientName = "onbeat" }),
			"+select":         testredis.User(t, admin, all, func(o *redis.Options) { o.DB = 3 }),
		} {
			q, err := queue.New(rdb, p, queue.Caps{})
			must(t, err)
			missing, err := q.Missing(t.Context(), role, true)
			if err != nil || !slices.Equal(missing, []string{want}) {
				t.Errorf("%s without %s: %v, %v", role, want, missing, err)
			}
		}
	}
}

// lines are those of a log, as a channel.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// A right that is taken away from an instance that runs is named by it, loudly; it does not end for that, and goes on when it
// has the right again.
func TestRun_namesARightThatIsTakenAway(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	for _, right := range []string{"+zadd", "+hset", "~"} {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			p := queue.Partition{Namespace: testredis.Namespace(t)}
			rules := strings.Fields(queue.ACL(queue.AsInstance, p, false))
			rdb := testredis.User(t, admin, rules)
			said := make(lines, 1000)
			d := dispatcher(t, rdb, onbeat.Config{Namespace: p.Namespace, Lease: time.Second, Log: zerolog.New(said).Level(zerolog.ErrorLevel)})
			run(t, d)
			leads := func() bool { return admin.HGet(t.Context(), p.Keys().Leader, "id").Val() != "" }
			testredis.Eventually(t, patience, leads, "it leads")
			change, want := "-"+right[1:], right
			if right == "~" {
				change, want = "resetkeys", "~"+p.Prefix()+"*"
			}
			user := []any{"ACL", "SETUSER", rdb.Options().Username}
			must(t, admin.Do(t.Context(), append(user, change)...).Err())
			for found := false; !found; {
				select {
				case line := <-said:
					found = strings.Contains(line, "the user lacks "+want+"; docs/rights.md") && strings.Contains(line, "redis refuses this instance")
				case <-time.After(patience):
					t.Fatalf("%s is not named", want)
				}
			}
			for _, rule := range rules {
				user = append(user, rule)
			}
			must(t, admin.Del(t.Context(), p.Keys().Leader).Err())
			must(t, admin.Do(t.Context(), user...).Err())
			testredis.Eventually(t, patience, leads, "it leads again")
		})
	}
}

// An instance that may not listen any more is told of nothing. It says so, and listens again when it has the right again.
func TestRun_listensAgainOnceItMay(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	p := queue.Partition{Namespace: testredis.Namespace(t)}
	rdb := testredis.User(t, admin, append(strings.Fields(queue.ACL(queue.AsInstance, p, false)), "+pubsub|numsub"))
	said := make(lines, 1000)
	d := dispatcher(t, rdb, onbeat.Config{Namespace: p.Namespace, Lease: time.Second, Log: zerolog.New(said).Level(zerolog.ErrorLevel)})
	run(t, d)
	listens := func(n int64) func() bool {
		return func() bool { return admin.PubSubNumSub(t.Context(), p.Keys().Wake).Val()[p.Keys().Wake] == n }
	}
	testredis.Eventually(t, patience, listens(1), "it listens")
	user := rdb.Options().Username
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", user, "-subscribe").Err())
	must(t, admin.Do(t.Context(), "CLIENT", "KILL", "USER", user, "TYPE", "pubsub").Err())
	testredis.Eventually(t, patience, listens(0), "it listens no more")
	select {
	case line := <-said:
		if !strings.Contains(line, "the user lacks +subscribe; docs/rights.md") || !strings.Contains(line, "redis refuses to let this instance listen") {
			t.Error(line)
		}
	case <-time.After(patience):
		t.Error("it says nothing")
	}
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", user, "+subscribe").Err())
	testredis.Eventually(t, patience, listens(1), "it listens again")
}
