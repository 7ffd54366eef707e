package queue

import (
	"fmt"
	"strings"

	"github.com/onbeat/onbeat/task"
)

// Partition is one dispatcher's share of a Redis: a namespace, or one part of it. Its keys share one hash tag, so every
// script is safe on Redis Cluster.
type Partition struct {
	// Namespace is the name of the dispatcher.
	Namespace string
	// Number is the number of this part, from 1. Zero: the namespace is not split.
	Number int
}

// Validate returns a [*task.FieldError] for a namespace that is empty, over 128 bytes, or has other characters than
// letters, digits and - _ . : / + (braces would move the hash tag; spaces and globs make keys that are hard to type).
func (p Partition) Validate() error { return task.CheckName("namespace", p.Namespace) }

// String is the name of the namespace, with "#" and the number behind it if it is split.
func (p Partition) String() string {
	if p.Number > 0 {
		return fmt.Sprintf("%s#%d", p.Namespace, p.Number)
	}
	return p.Namespace
}

// Prefix returns the prefix of every key of the partition.
func (p Partition) Prefix() string { return "onbeat:{" + p.String() + "}:" }

// Keys names every key of a partition, once. Scripts get them as KEYS and build no names themselves. Times are in unix
// milliseconds.
type Keys struct {
	prefix string

	Tasks   string // hash   task -> record (see task.Encode)
	Lanes   string // hash   lane -> first used
	Held    string // zset   due tasks that wait for their key (see lib_held.lua)
	Active  string // hash   "k:key", "b:key" (only runs that are behind), "t:type" -> how many run
	Dead    string // zset   task -> when it died
	Done    string // zset   task -> end of keeping
	Cancel  string // hash   task or "k:key" -> "fence asked-at reason"
	Watch   string // zset   instance (and what it reads) -> the moment it will look again
	Orphans string // zset   generation -> when it was declared dead

	Schedules string // hash schedule -> definition
	Last      string // hash schedule -> "rev slot runs anchor paused"
	Behind    string // hash schedule -> missed slots that are still to be pushed (see Behind)
	Changed   string // zset schedule -> version of its last change

	Retired     string // hash retired or deleted schedule -> when and by whom, last run, definition (see change.lua)
	Retirements string // zset retired or deleted schedule -> when
	Revisions   string // hash schedule -> its revisions, the newest first (see change.lua)
	Pauses      string // hash paused schedule -> since when, by whom and why (see change.lua)

	Instances string // zset instance -> lease end
	Members   string // hash instance -> rank and state (see lib_elect.lua)
	Details   string // hash instance -> JSON for people
	Leader    string // hash id, gen, epoch, order, consume, open, since, monitor, sign
	Releases  string // hash release -> "order gone"
	Trial     string // zset generation -> until when it is on probation, or has to prove itself (see lib_elect.lua)
	Strikes   string // hash release -> "how often it was lost soon after becoming ready, when last"
	Declarers string // hash generation that declared schedules -> "order gone"
	Asked     string // hash instance -> what a person asked of it: "what generation when" (see ask.lua)
	Suspects  string // hash instance -> what is noted of its being suspected: "generation listens wrong when since" (see lib_elect.lua)
	// Meta is a hash of counters: gen, epoch, order, fence, lanes, schedules, done, retried, died, declared; beat,
	// clock; "backlog:<schedule>" (see advance.lua), "lost:<ms>:<key>" (see mend.lua).
	Meta string

	Answers  string // hash request with an Idempotency-Key -> its answer (see answer_claim.lua)
	Answered string // zset the same requests -> when each was claimed

	Bulk string // hash bulk action -> its record (see lib_bulk.lua)

	Notices string // hash what the leader has told its targets of (see package notify)
	Health  string // hash schedule -> how its slots went, as of the leader (see producer.Health)

	Events  string // stream state changes, capped
	History string // stream what became of the slots of schedules, capped
	Runs    string // stream runs of tasks that no schedule made, capped; only for an archive (see Caps.Archive)
	Wake    string // channel; Wake + ":" + instance for one instance
}

// Keys returns the names of the partition's keys.
func (p Partition) Keys() Keys {
	x := p.Prefix()
	return Keys{
		prefix: x,
		Tasks:  x + "tasks", Lanes: x + "lanes", Held: x + "held", Active: x + "active",
		Dead: x + "dead", Done: x + "done", Cancel: x + "cancel", Watch: x + "watch", Orphans: x + "orphans",
		Schedules: x + "schedules", Last: x + "last", Behind: x + "behind", Changed: x + "changed",
		Instances: x + "instances", Members: x + "members", Details: x + "details", Leader: x + "leader",
		Releases: x + "releases", Trial: x + "trial", Strikes: x + "strikes", Declarers: x + "declarers", Asked: x + "asked",
		Suspects: x + "suspects", Meta: x + "meta",
		Retired: x + "retired", Retirements: x + "retirements", Revisions: x + "revisions", Pauses: x + "pauses",
		Answers: x + "answers", Answered: x + "answered", Bulk: x + "bulk", Notices: x + "notices", Health: x + "health",
		Events: x + "events", History: x + "history", Runs: x + "runs", Wake: x + "wake",
	}
}

// Running returns the hash of a generation's claims.
func (k Keys) Running(gen int64) string { return fmt.Sprintf("%srunning:%d", k.prefix, gen) }

// Due returns the due set of a lane: a zset of task -> due time.
func (k Keys) Due(l Lane) string { return k.prefix + "due:" + l.String() }

// Unique returns the string that names the task holding a unique key. It expires with the window.
func (k Keys) Unique(key string) string { return k.prefix + "unique:" + key }

// Moved returns the string that marks a task as moved here from another store (see move.lua). It expires.
func (k Keys) Moved(mark string) string { return k.prefix + "moved:" + mark }

// Sessions returns the zset of the sessions of a token's holder, each with its end. It expires with the last.
func (k Keys) Sessions(holder string) string { return k.prefix + "sessions:" + holder }

// WakeOf returns the wake-up channel of one instance.
func (k Keys) WakeOf(instance string) string { return k.Wake + ":" + instance }

// Lane names a due set, of one queue, priority and type. A consumer reads only the lanes of types that it handles,
// so a task of an unknown type waits and costs no instance anything.
type Lane struct {
	Queue    string
	Priority task.Priority
	Type     string
}

// LaneOf returns the lane of a task.
func LaneOf(t *task.Task) Lane { return Lane{Queue: t.QueueName(), Priority: t.Priority, Type: t.Type} }

// String returns queue|priority|type. Names contain no bar.
func (l Lane) String() string { return l.Queue + "|" + l.Priority.String() + "|" + l.Type }

// ParseLane reads the text of String.
func ParseLane(s string) (Lane, error) {
	queue, rest, ok := strings.Cut(s, "|")
	priority, typ, ok2 := strings.Cut(rest, "|")
	p, err := task.ParsePriority(priority)
	if !ok || !ok2 || err != nil {
		return Lane{}, fmt.Errorf("lane %q: not queue|priority|type", s)
	}
	return Lane{Queue: queue, Priority: p, Type: typ}, nil
}
