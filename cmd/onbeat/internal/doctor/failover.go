package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/store"
)

// failoverRest is the rest of a failover, after the primary counts as gone: the time to agree on that, to elect and promote a
// replica, and to tell the clients.
const failoverRest = 3 * time.Second

// failover compares how long a failover keeps Redis away with how long an instance can do without Redis. If the lease is
// shorter than the failover, all leases run out meanwhile, and then no instance leads.
func (d *doctor) failover(ctx context.Context) {
	var (
		name  string
		after time.Duration
		err   error
	)
	switch {
	case d.sentinels != nil:
		name = "down-after-milliseconds"
		after, err = d.downAfter(ctx)
	case d.info["cluster_enabled"] == "1":
		name = "cluster-node-timeout"
		v, known := d.configOf(ctx, name)
		if after, err = readMillis(v); !known {
			err = fmt.Errorf("the user may not run CONFIG GET %s", name)
		}
	default:
		return
	}
	if err != nil {
		d.ok("failover", "cannot read how long a failover takes: %v", err)
		return
	}
	lease := d.shortestLease(ctx)
	need := after + failoverRest
	const format = "takes up to %s (%s is %s), and the shortest lease is %s"
	if lease >= need {
		d.ok("failover", format, need, name, after, lease)
		return
	}
	d.warn("failover", fmt.Sprintf("set lease: %s or more, or lower %s", need, name),
		format+": no instance leads then for a while, and slots that fall due meanwhile are late, or missed if their schedule says so",
		need, name, after, lease)
}

// shortestLease returns the shortest lease of the registered instances. If none reports a lease, it returns the config's.
func (d *doctor) shortestLease(ctx context.Context) time.Duration {
	var shortest time.Duration
	for _, i := range d.seen(ctx).instances.Items {
		if l := time.Duration(i.LeaseMS) * time.Millisecond; l > 0 && (shortest == 0 || l < shortest) {
			shortest = l
		}
	}
	if shortest == 0 {
		shortest = d.cfg.Lease
	}
	if shortest == 0 {
		shortest = instance.DefaultLease
	}
	return shortest
}

// downAfter asks the sentinels one after the other until one answers.
func (d *doctor) downAfter(ctx context.Context) (after time.Duration, err error) {
	for _, url := range d.sentinels.urls {
		if after, err = askSentinel(ctx, url, d.sentinels.master); err == nil {
			return after, nil
		}
	}
	return 0, err
}

func askSentinel(ctx context.Context, url, master string) (time.Duration, error) {
	rdb, err := store.Dial(url)
	if err != nil {
		return 0, err
	}
	defer func() { _ = rdb.Close() }()
	cmd := redis.NewMapStringStringCmd(ctx, "sentinel", "master", master)
	if err := rdb.Process(ctx, cmd); err != nil {
		return 0, store.Classify(err) // Classify removes the password, which a server may repeat
	}
	return readMillis(cmd.Val()["down-after-milliseconds"])
}

func readMillis(text string) (time.Duration, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 || n > int64(time.Hour*24*365/time.Millisecond) {
		return 0, fmt.Errorf("not a time in ms: %q", text)
	}
	return time.Duration(n) * time.Millisecond, nil
}
