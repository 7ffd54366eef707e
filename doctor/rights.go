package doctor

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/queue"
)

// rights tries all that an instance does, by name.
func (d *doctor) rights(ctx context.Context) {
	missing, err := d.q.Missing(ctx, queue.AsInstance, d.cfg.Durability.Replicas > 0)
	switch rules := strings.Join(missing, " "); {
	case err != nil:
		d.fail("rights", "", "%v", err)
	case rules != "":
		hint := "ACL SETUSER " + d.user() + " " + rules + " (" + admin.RightsPage + ")"
		if d.node != nil { // it connects, and may be all that it is meant to be: a reader is not to be made an instance unawares
			hint = "this is not the user of an instance (fine for a producer, a reader or locks); for an instance: " + hint
		}
		d.fail("rights", hint, "this user lacks %s, which an instance needs", rules)
	default:
		d.ok("rights", "all that an instance needs")
	}
}

// user is who the doctor is to Redis.
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
