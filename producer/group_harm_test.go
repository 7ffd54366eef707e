package producer

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// A large task shares no call: neither does it wait, nor do others fail when Redis hangs up on it.
func TestGroup_aTaskTooLargeHarmsNobody(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t, "--proto-max-bulk-len", "1mb")
	c := newCrowd(t, srv.Client())
	c.p.cfg.Limits.Payload = 4 << 20
	c.joins(t.Context(), task.New("job", nil, task.ID("a")))
	large := c.enqueue(t.Context(), task.New("job", make([]byte, 2<<20), task.ID("large")))
	c.holds() // though others wait
	c.joins(t.Context(), task.New("job", make([]byte, aloneBytes), task.ID("b")))
	for i, o := range c.all() {
		if refused := c.over[i] == large; refused != (o.err != nil) || refused == c.there(o.id) {
			t.Errorf("%+v", o)
		}
	}
}

// Redis denies a whole call for one key that its user may not touch. The others are added nevertheless.
func TestGroup_aTaskThatIsDeniedHarmsNobody(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	admin := srv.Client()
	rdb := srv.Client(func(o *redis.Options) { o.Username, o.Password = "some", "secret" })
	ns := testredis.Namespace(t)
	q, err := queue.New(admin, queue.Partition{Namespace: ns}, queue.Caps{})
	must(t, err)
	k := q.Keys()
	acl := []string{"on", ">secret", "+@all", "allchannels"}
	for _, key := range []string{k.Tasks, k.Lanes, k.Meta, k.Watch, k.Due(queue.Lane{Queue: "default", Type: "job"}), k.Due(queue.Lane{Queue: "mine", Type: "job"})} {
		acl = append(acl, "~"+key)
	}
	must(t, admin.ACLSetUser(t.Context(), "some", acl...).Err())
	c := crowdIn(t, rdb, ns)
	for i := range 10 {
		c.joins(t.Context(), task.New("job", nil, task.Queue([]string{"mine", "theirs"}[i%2])))
	}
	for i, o := range c.all()[abreast:] {
		there := admin.HExists(t.Context(), k.Tasks, o.id).Val()
		if theirs := i%2 == 1; there == theirs || theirs != errors.Is(o.err, task.ErrDenied) {
			t.Errorf("%d: %+v, there: %v", i, o, there)
		}
	}
}

func TestGroup_nobodyHangsWhenRedisGoes(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	c := newCrowd(t, srv.Client(func(o *redis.Options) { o.DialerRetries, o.PoolSize = 1, 1000 }))
	for range 50 {
		c.joins(t.Context(), task.New("job", nil))
	}
	srv.Kill()
	for _, o := range c.all() {
		if !errors.Is(o.err, task.ErrUnreachable) {
			t.Errorf("%+v", o)
		}
	}
}
