package doctor

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
)

// rights checks the user's rights to all that an instance does.
func (d *doctor) rights(ctx context.Context) {
	if d.cfg.Uncounted && d.node != nil { // it connects; which rights it needs depends on that
		meta := d.q.Keys().Meta
		d.fail("rights", "ACL SETUSER "+d.user()+" ~"+meta+" ("+admin.RightsPage+"), or give --config with partitions; then run the doctor again",
			"this user may not read %s, so it is not known whether the namespace is split into partitions", meta)
		return
	}
	missing, err := d.q.Missing(ctx, queue.AsInstance, d.cfg.Durability.Replicas > 0)
	switch rules := strings.Join(missing, " "); {
	case err != nil:
		d.fail("rights", "", "%v", err)
	case rules != "":
		hint := "ACL SETUSER " + d.user() + " " + rules + " (" + admin.RightsPage + ")"
		if d.node != nil { // it connects, so it may well be a reader: the hint must not lead people to give a reader all rights
			hint = "this is not the user of an instance (fine for a producer, a reader or locks); for an instance: " + hint
		}
		d.fail("rights", hint, "this user lacks %s, which an instance needs", rules)
	default:
		d.ok("rights", "all that an instance needs%s", d.unheard(ctx))
	}
}

// unheard says what the user of an instance lacks that only makes it slower.
func (d *doctor) unheard(ctx context.Context) string {
	if d.node == nil || !store.LacksRight(store.Classify(d.node.PubSubNumSub(ctx, d.q.Keys().Wake).Err())) {
		return ""
	}
	return "; without +pubsub|numsub a leader that crashes is replaced when its lease runs out, and not at once"
}

// user returns the name of the Redis user that the doctor connects as.
func (d *doctor) user() string {
	name := ""
	switch rdb := d.cfg.Redis.(type) {
	case *redis.Client:
		name = rdb.Options().Username
	case *redis.ClusterClient:
		name = rdb.Options().Username
	}
	if name == "" {
		return "default"
	}
	return name
}
