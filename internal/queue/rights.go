package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// Role is the part that a Redis client plays. It decides which rights the client's user needs.
type Role string

// The roles.
const (
	AsInstance Role = "instance" // leads, schedules, consumes, and does all that the other roles do
	AsProducer Role = "producer" // enqueues tasks
	AsReader   Role = "reader"   // lists, shows, audits
)

// tries maps each command to a harmless form of it: on an entry that does not exist, or with a value that Redis refuses
// after it has checked the user's rights. Commands that a producer needs are tried on keys that a producer may use.
var tries = map[string]func(k *Keys) []any{
	"eval":             func(*Keys) []any { return []any{"EVAL", "return 1", 0} },
	"evalsha":          func(*Keys) []any { return []any{"EVALSHA", strings.Repeat("0", 40), 0} },
	"script|load":      func(*Keys) []any { return []any{"SCRIPT", "LOAD", "return 1"} },
	"ping":             func(*Keys) []any { return []any{"PING"} },
	"client|setname":   func(*Keys) []any { return []any{"CLIENT", "SETNAME", "no name"} },
	"time":             func(*Keys) []any { return []any{"TIME"} },
	"exists":           func(k *Keys) []any { return []any{"EXISTS", k.Active} },
	"get":              func(k *Keys) []any { return []any{"GET", k.Unique("\x00")} },
	"set":              func(k *Keys) []any { return []any{"SET", k.Unique("\x00"), "", "PX", "x"} },
	"del":              func(k *Keys) []any { return []any{"DEL", k.Unique("\x00")} },
	"type":             func(k *Keys) []any { return []any{"TYPE", k.Tasks} },
	"rename":           func(k *Keys) []any { return []any{"RENAME", k.Unique("\x00"), k.Unique("\x01")} },
	"pexpire":          func(k *Keys) []any { return []any{"PEXPIRE", k.Unique("\x00"), 1} },
	"hget":             func(k *Keys) []any { return []any{"HGET", k.Meta, "\x00"} },
	"hmget":            func(k *Keys) []any { return []any{"HMGET", k.Tasks, "\x00"} },
	"hgetall":          func(k *Keys) []any { return []any{"HGETALL", k.Leader} },
	"hkeys":            func(k *Keys) []any { return []any{"HKEYS", k.Lanes} },
	"hvals":            func(k *Keys) []any { return []any{"HVALS", k.Members} },
	"hlen":             func(k *Keys) []any { return []any{"HLEN", k.Lanes} },
	"hexists":          func(k *Keys) []any { return []any{"HEXISTS", k.Tasks, "\x00"} },
	"hscan":            func(k *Keys) []any { return []any{"HSCAN", k.Schedules, 0, "MATCH", "\x00"} },
	"hset":             func(k *Keys) []any { return []any{"HSET", k.Meta, "\x00", "", "\x00"} },
	"hdel":             func(k *Keys) []any { return []any{"HDEL", k.Tasks, "\x00"} },
	"zadd":             func(k *Keys) []any { return []any{"ZADD", k.Watch, "x", "\x00"} },
	"zincrby":          func(k *Keys) []any { return []any{"ZINCRBY", k.Instances, "x", "\x00"} },
	"zrem":             func(k *Keys) []any { return []any{"ZREM", k.Watch, "\x00"} },
	"zremrangebyrank":  func(k *Keys) []any { return []any{"ZREMRANGEBYRANK", k.Held, "x", "x"} },
	"zremrangebyscore": func(k *Keys) []any { return []any{"ZREMRANGEBYSCORE", k.Trial, "x", "x"} },
	"zscore":           func(k *Keys) []any { return []any{"ZSCORE", k.Done, "\x00"} },
	"zmscore":          func(k *Keys) []any { return []any{"ZMSCORE", k.Changed, "\x00"} },
	"zcard":            func(k *Keys) []any { return []any{"ZCARD", k.Orphans} },
	"zcount":           func(k *Keys) []any { return []any{"ZCOUNT", k.Done, 0, 0} },
	"zlexcount":        func(k *Keys) []any { return []any{"ZLEXCOUNT", k.Held, "[a", "[a"} },
	"zrange":           func(k *Keys) []any { return []any{"ZRANGE", k.Watch, 0, 0} },
	"zrangebylex":      func(k *Keys) []any { return []any{"ZRANGEBYLEX", k.Held, "[a", "[a"} },
	"zrangebyscore":    func(k *Keys) []any { return []any{"ZRANGEBYSCORE", k.Changed, 0, 0} },
	"xadd":             func(k *Keys) []any { return []any{"XADD", k.Events, "x", "a", "b"} },
	"xdel":             func(k *Keys) []any { return []any{"XDEL", k.History, "0-0"} },
	"xrange":           func(k *Keys) []any { return []any{"XRANGE", k.History, "-", "+", "COUNT", 1} },
	"xrevrange":        func(k *Keys) []any { return []any{"XREVRANGE", k.Events, "+", "-", "COUNT", 1} },
	"xread":            func(k *Keys) []any { return []any{"XREAD", "COUNT", 1, "STREAMS", k.Events, "$"} },
	"xinfo|stream":     func(k *Keys) []any { return []any{"XINFO", "STREAM", k.History} },
	"wait":             func(*Keys) []any { return []any{"WAIT", 0, 1} },
	"publish":          func(k *Keys) []any { return []any{"PUBLISH", k.WakeOf("\x00"), ""} },
}

// needs lists the commands that each role needs.
var needs = map[Role][]string{
	AsInstance: {
		"eval", "evalsha", "script|load", "client|setname", "ping", "time", "exists", "get", "set", "del", "type", "rename", "pexpire",
		"hget", "hmget", "hgetall", "hkeys", "hvals", "hlen", "hexists", "hscan", "hset", "hdel",
		"zadd", "zincrby", "zrem", "zremrangebyrank", "zremrangebyscore", "zscore", "zmscore", "zcard", "zcount", "zlexcount",
		"zrange", "zrangebylex", "zrangebyscore", "xadd", "xdel", "xrange", "xrevrange", "xread", "xinfo|stream",
		"publish", "subscribe",
	},
	AsProducer: {
		"eval", "evalsha", "client|setname", "ping", "time", "get", "set", "del", "hget", "hmget", "hlen", "hset", "hdel",
		"zadd", "zrem", "zrange", "publish",
	},
	AsReader: {
		"eval", "evalsha", "client|setname", "ping", "time", "get", "hget", "hmget", "hgetall", "hkeys", "hlen", "hexists", "hscan",
		"zscore", "zmscore", "zcard", "zcount", "zrange", "zrangebylex", "zrangebyscore", "xrange", "xrevrange", "xread", "xinfo|stream",
	},
}

// patterns returns the keys and the channels that a role may use. A producer may not touch schedules, instances or the
// leader. A reader uses no channel: it neither wakes an instance nor is woken.
func patterns(r Role, k *Keys) (keys, channels []string) {
	all := []string{k.prefix + "*"}
	switch r {
	case AsProducer:
		return []string{k.Tasks, k.Lanes, k.Meta, k.Watch, k.prefix + "due:*", k.Unique("*")}, []string{k.Wake, k.WakeOf("*")}
	case AsReader:
		return all, nil
	}
	return all, all
}

// ACL returns the rules that the user of a role needs in a partition, as ACL SETUSER takes them. With durability the user
// needs WAIT too.
func ACL(r Role, p Partition, durable bool) string {
	k := p.Keys()
	keys, channels := patterns(r, &k)
	var rules []string
	for _, key := range keys {
		rules = append(rules, "~"+key)
	}
	for _, channel := range channels {
		rules = append(rules, "&"+channel)
	}
	for _, name := range commands(r, durable) {
		rules = append(rules, "+"+name)
	}
	return strings.Join(rules, " ")
}

func commands(r Role, durable bool) []string {
	if durable {
		return append(slices.Clone(needs[r]), "wait")
	}
	return needs[r]
}

// try is a command that is sent to see whether Redis refuses it. Name is the command's name in the rules.
type try struct {
	name string
	args []any
}

// triesOf returns a try for each command of a role, and one for each pattern of its keys and channels.
func (q *Queue) triesOf(r Role, durable bool) (list []try) {
	for _, name := range commands(r, durable) {
		if args := tries[name]; args != nil {
			list = append(list, try{name, args(&q.keys)})
		}
	}
	keys, channels := patterns(r, &q.keys)
	for _, p := range keys { // a script that does not exist: it accepts a key of any type
		list = append(list, try{"evalsha", []any{"EVALSHA", strings.Repeat("0", 40), 1, strings.Replace(p, "*", "\x00", 1)}})
	}
	for _, p := range channels { // an empty message, which subscribers ignore
		list = append(list, try{"publish", []any{"PUBLISH", strings.Replace(p, "*", "\x00", 1), ""}})
	}
	return list
}

// Missing tries each right that a role needs, and returns the rights that this user lacks, as the rules that would grant
// them: "+publish", "~onbeat:{default}:*". With durability the user needs WAIT too. Missing changes nothing in Redis. It
// returns an error that matches [task.ErrDenied] if Redis does not accept the user or its password.
func (q *Queue) Missing(ctx context.Context, r Role, durable bool) ([]string, error) {
	refused := map[string]bool{}
	pipe, list := q.rdb.Pipeline(), q.triesOf(r, durable)
	if node := store.Node(ctx, q.rdb, q.keys.Meta); node != nil { // a command without a key would go to any node of a cluster, also one that is away
		pipe = node.Pipeline()
	}
	cmds := make([]*redis.Cmd, len(list))
	for i, t := range list {
		cmds[i] = pipe.Do(ctx, t.args...)
	}
	// The error is that of the first command that failed, or one of the connection, which the commands do not have.
	_, err := pipe.Exec(ctx)
	if err := unanswered(err); err != nil {
		return nil, fmt.Errorf("check the rights of the user: %w", err)
	}
	switch err := store.Classify(err); {
	case lasts(err):
		return nil, fmt.Errorf("check the rights of the user: %w", err)
	case store.LacksRight(err) && !slices.ContainsFunc(cmds, func(c *redis.Cmd) bool { return c.Err() != nil }):
		return []string{q.rule(r, try{}, err.Error())}, nil // nothing was tried
	}
	for i, cmd := range cmds {
		if err := unanswered(cmd.Err()); err != nil {
			return nil, fmt.Errorf("check the rights of the user: %w", err)
		}
		switch err := store.Classify(cmd.Err()); {
		case lasts(err):
			return nil, fmt.Errorf("check the rights of the user: %w", err)
		case errors.Is(err, task.ErrDenied):
			refused[q.rule(r, list[i], err.Error())] = true
		}
	}
	if r == AsInstance {
		if err := q.trySubscribe(ctx, refused); err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(refused)), nil
}

// rule is what would allow a try that was refused, by what Redis says: up to 7.0, then since 7.2.
func (q *Queue) rule(r Role, t try, said string) string {
	keys, channels := patterns(r, &q.keys)
	switch {
	case strings.Contains(said, "one of the keys"), strings.Contains(said, "access a key"):
		return "~" + covering(keys, t.args)
	case strings.Contains(said, "one of the channels"), strings.Contains(said, "access a channel"):
		return "&" + covering(channels, t.args)
	}
	return "+" + refusedCommand(t.name, said)
}

// refusedCommand returns the command that Redis refused: the one that was tried, or one with which the client opens its
// connection.
func refusedCommand(tried, said string) string {
	_, rest, _ := strings.Cut(said, "to run the '")
	name, _, ok := strings.Cut(rest, "'")
	whole, _, _ := strings.Cut(tried, "|")
	switch {
	case !ok || name == whole: // Redis 6.2 leaves out the subcommand
		return tried
	case name == "client":
		return "client|setname"
	}
	return name
}

// covering returns the pattern that covers a key or channel among the arguments of a try.
func covering(patterns []string, args []any) string {
	for _, p := range patterns {
		head, open := strings.CutSuffix(p, "*")
		for _, arg := range args {
			if s, _ := arg.(string); s == p || open && strings.HasPrefix(s, head) {
				return p
			}
		}
	}
	return ""
}

// unanswered returns err, classified, if Redis did not answer: then the try has shown nothing. It returns nil for an
// answer that refuses for another reason, such as CLUSTERDOWN or OOM: Redis checks the rights before it gives that one.
func unanswered(err error) error {
	var reply redis.Error
	if err == nil || errors.As(err, &reply) {
		return nil
	}
	return store.Classify(err)
}

// lasts reports whether an error is not about a single right: Redis is away, or does not accept the user or the password.
func lasts(err error) bool {
	return errors.Is(err, task.ErrUnreachable) || errors.Is(err, task.ErrDenied) && !store.LacksRight(err)
}

func (q *Queue) trySubscribe(ctx context.Context, refused map[string]bool) error {
	t := try{"subscribe", []any{"SUBSCRIBE", q.keys.WakeOf("\x00")}}
	sub := q.rdb.Subscribe(ctx, q.keys.WakeOf("\x00"))
	defer func() { _ = sub.Close() }()
	_, err := sub.Receive(ctx)
	switch err := store.Classify(err); {
	case lasts(err):
		return fmt.Errorf("check the rights of the user: %w", err)
	case errors.Is(err, task.ErrDenied):
		refused[q.rule(AsInstance, t, err.Error())] = true
	}
	return nil
}
