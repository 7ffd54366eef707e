package peer

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/queue"
)

// claims counts the calls of onbeat's cycle script that asked for tasks, and those of them that got none, by looking at
// what goes over the wire.
type claims struct {
	All, Empty atomic.Int64
}

// A call of cycle.lua has, behind "evalsha", its hash and the number of keys, the running hash as seventh key, and as
// fourth argument how many tasks it wants. A reply of nine values holds no task.
const (
	cycleRunning = 3 + 6
	cycleWant    = 3
	emptyReply   = 9
)

var runningPrefix = queue.Partition{Namespace: Namespace}.Keys().Running(0)

func (c *claims) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *claims) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *claims) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && wantsTasks(cmd.Args()) {
			if r, ok := cmd.(interface{ Result() (any, error) }); ok {
				c.All.Add(1)
				if v, _ := r.Result(); isEmpty(v) {
					c.Empty.Add(1)
				}
			}
		}
		return err
	}
}

func isEmpty(reply any) bool {
	values, ok := reply.([]any)
	return ok && len(values) <= emptyReply
}

// wantsTasks tells a cycle that asks for tasks from every other command.
func wantsTasks(args []any) bool {
	if len(args) <= cycleRunning {
		return false
	}
	keys, ok := args[2].(int)
	running, isKey := args[cycleRunning].(string)
	if !ok || !isKey || len(args) <= 3+keys+cycleWant || keys < 14 {
		return false
	}
	prefix := runningPrefix[:len(runningPrefix)-1] // without the generation
	want, ok := args[3+keys+cycleWant].(int)
	return ok && want > 0 && len(running) > len(prefix) && running[:len(prefix)] == prefix
}
