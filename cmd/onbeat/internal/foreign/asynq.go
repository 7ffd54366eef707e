package foreign

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// The keys of asynq v0.26, by internal/base/base.go there: https://github.com/hibiken/asynq/blob/v0.26.0/internal/base/base.go
const (
	asynqSchedulers = "asynq:schedulers" // zset of keys of lists
	asynqQueues     = "asynq:queues"     // set
)

// Asynq reads what the schedulers of asynq that run now have registered. The zone is that of the schedulers; by default theirs is UTC.
func (j *Jobs) Asynq(ctx context.Context, rdb redis.UniversalClient, zone string) error {
	keys, err := rdb.ZRange(ctx, asynqSchedulers, 0, -1).Result()
	if err != nil {
		return err
	}
	seen := map[string]bool{} // each of several schedulers has the same entries
	for _, key := range keys {
		if !strings.HasPrefix(key, asynqSchedulers+":") {
			continue
		}
		list, err := rdb.LRange(ctx, key, 0, -1).Result()
		if err != nil {
			return err
		}
		for _, text := range list {
			e, err := entryOf([]byte(text))
			if err != nil {
				j.leave(Place{File: key}, "an entry that is not read", "")
				continue
			}
			if same := e.spec + "\n" + e.typ + "\n" + string(e.payload) + "\n" + strings.Join(e.options, "\n"); !seen[same] {
				seen[same] = true
				j.asynqEntry(Place{File: key}, e, zone)
			}
		}
	}
	return nil
}

// An entry of a scheduler: SchedulerEntry of asynq.proto.
type entry struct {
	spec, typ string
	payload   []byte
	options   []string
}

func entryOf(text []byte) (*entry, error) {
	e := &entry{}
	return e, fields(text, func(number protowire.Number, value []byte, _ uint64) {
		switch number {
		case 2:
			e.spec = string(value)
		case 3:
			e.typ = string(value)
		case 4:
			e.payload = value
		case 5:
			e.options = append(e.options, string(value))
		}
	})
}

// fields calls do with each field of a message of protobuf. Numbers that are not whole are passed over: there are none.
func fields(text []byte, do func(number protowire.Number, value []byte, n uint64)) error {
	for len(text) > 0 {
		number, typ, size := protowire.ConsumeTag(text)
		if size < 0 {
			return protowire.ParseError(size)
		}
		text = text[size:]
		var value []byte
		var n uint64
		switch typ {
		case protowire.BytesType:
			value, size = protowire.ConsumeBytes(text)
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(text)
		default:
			size = protowire.ConsumeFieldValue(number, typ, text)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		do(number, value, n)
		text = text[size:]
	}
	return nil
}

// option is a call such as MaxRetry(5), as asynq writes the options of an entry.
var option = regexp.MustCompile(`^(\w+)\((.*)\)$`)

const (
	asynqRetries = 25               // the default of MaxRetry
	asynqTimeout = 30 * time.Minute // that of Timeout
)

func (j *Jobs) asynqEntry(at Place, e *entry, zone string) {
	s := producer.Schedule{Name: e.typ, Task: e.typ, Timeout: asynqTimeout, MaxAttempts: asynqRetries + 1}
	spec := e.spec
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		if rest, ok := strings.CutPrefix(spec, prefix); ok {
			zone, spec = cut(rest)
		}
	}
	if text, ok := strings.CutPrefix(spec, "@every "); ok {
		d, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil {
			j.leave(at, e.typ+" "+e.spec+": not read", "")
			return
		}
		s.Every = max(d, time.Second).Truncate(time.Second) // as robfig/cron does
	} else {
		s.Rule = asRobfig("", spec, zone).Rule
	}
	s.Missed = schedule.MissedSkip
	var ok bool
	if s.Payload, ok = asynqPayload(e.payload); !ok {
		j.leave(at, e.typ+": the payload is not JSON", "write the payload as JSON")
		return
	}
	for _, o := range e.options {
		m := option.FindStringSubmatch(o)
		if m == nil {
			m = []string{o, o, ""}
		}
		switch name, value := m[1], m[2]; name {
		case "Queue":
			if text, err := strconv.Unquote(value); err == nil {
				s.Queue = text
			}
		case "MaxRetry":
			if n, err := strconv.Atoi(value); err == nil {
				s.MaxAttempts = min(n+1, 100)
			}
		case "Timeout":
			if d, err := time.ParseDuration(value); err == nil && d > 0 {
				s.Timeout = d
			}
		default:
			j.note(at, e.typ+": option "+name+" has no effect", "")
		}
	}
	if s.Queue == "default" {
		s.Queue = ""
	}
	j.add(at, e.spec+" "+e.typ, &s)
}

// asynqPayload returns a payload as JSON; asynq has any bytes there.
func asynqPayload(text []byte) (json.RawMessage, bool) {
	if len(text) == 0 {
		return nil, true
	}
	return text, json.Valid(text)
}

// An AsynqTask is a task that waits in asynq: TaskMessage of asynq.proto.
type AsynqTask struct {
	ID, Queue, Type string
	Payload         json.RawMessage
	Due             time.Time // zero: now
	Attempts        int       // how many it still has
	Timeout         time.Duration
	Lock            string // its unique lock, or ""

	taken bool // by this move: none before it can have added the task
}

// asynqUnique is how long a task that was moved is known: a move that is repeated after a crash does not add it again.
const asynqUnique = 7 * 24 * time.Hour

func (t *AsynqTask) task() *task.Task {
	id := "asynq:" + t.Queue + ":" + t.ID
	one := &task.Task{
		ID: id, Type: t.Type, Payload: t.Payload, Queue: t.Queue, Due: t.Due, MaxAttempts: t.Attempts, Timeout: t.Timeout, UniqueKey: id, UniqueFor: asynqUnique,
	}
	if one.Queue == "default" {
		one.Queue = ""
	}
	return one
}

// errStays is why a task stays with asynq.
var errStays = errors.New("stays with asynq")

func taskOf(text []byte) (*AsynqTask, error) {
	t := &AsynqTask{}
	var payload []byte
	var retry, retried, deadline uint64
	err := fields(text, func(number protowire.Number, value []byte, n uint64) {
		switch number {
		case 1:
			t.Type = string(value)
		case 2:
			payload = value
		case 3:
			t.ID = string(value)
		case 4:
			t.Queue = string(value)
		case 5:
			retry = n
		case 6:
			retried = n
		case 8:
			t.Timeout = time.Duration(min(n, 1<<31)) * time.Second
		case 9:
			deadline = n
		case 10:
			t.Lock = string(value)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%w: it is not read", errStays)
	}
	t.Attempts = int(min(max(int64(retry), int64(retried))-int64(retried)+1, 100))
	t.Timeout = cmp.Or(t.Timeout, asynqTimeout)
	var ok bool
	switch t.Payload, ok = asynqPayload(payload); {
	case !ok:
		return nil, fmt.Errorf("%w: the payload of %s is not JSON", errStays, t.Type)
	case deadline != 0:
		return nil, fmt.Errorf("%w: %s has a deadline", errStays, t.Type)
	}
	return t, nil
}

// asynqStates are the states of tasks that wait, with the kind of key of each. Pending ones come first: they are due.
var asynqStates = []string{"pending", "scheduled", "retry"}

// AsynqWaiting counts the tasks that wait in each queue of asynq.
func AsynqWaiting(ctx context.Context, rdb redis.UniversalClient) (queues []string, n int64, err error) {
	if queues, err = rdb.SMembers(ctx, asynqQueues).Result(); err != nil {
		return nil, 0, err
	}
	slices.Sort(queues)
	for _, q := range queues {
		pending, err := rdb.LLen(ctx, asynqKey(q, "pending")).Result()
		if err != nil {
			return nil, 0, err
		}
		n += pending
		for _, set := range []string{"scheduled", "retry", asynqHeld} {
			in, err := rdb.ZCard(ctx, asynqKey(q, set)).Result()
			if err != nil {
				return nil, 0, err
			}
			n += in
		}
	}
	return queues, n, nil
}

// asynqHeld is the end of the key of the tasks that an import holds.
const asynqHeld = "onbeat"

func asynqKey(queue, end string) string { return "asynq:{" + queue + "}:" + end }
