// Package split says in which partition of a namespace a schedule or a task lies. Its answers must last as long as the keys in Redis:
// another answer for a name would lose what lies under it.
package split

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// Most is the largest number of partitions of a namespace.
const Most = queue.MostPartitions

// Map is how a namespace is split. The zero value is one that is not.
type Map struct {
	// Partitions is how many there are: 1 to [Most]. 0 is 1.
	Partitions int
	// Limited reports whether a type has a limit on how many of its tasks run at once: they all lie in one partition. nil: none has.
	Limited func(typ string) bool
}

// Check refuses a number of partitions that is out of range.
func Check(partitions int) error {
	if partitions >= 0 && partitions <= Most {
		return nil
	}
	return &task.FieldError{Field: "partitions", Value: fmt.Sprint(partitions), Reason: "out of range", Hint: fmt.Sprintf("1 to %d; the default is 1", Most)}
}

// Of returns the partition of a name, from 1: that of a schedule, a key, or an ID that a caller made up.
func (m Map) Of(name string) int { return m.at(hash(fnvOffset, name)) }

// at folds the upper half of a hash onto the lower: of the last letters of a name alone the lower half says too little.
func (m Map) at(sum uint64) int {
	if m.Partitions < 2 {
		return 1
	}
	return int((sum^sum>>32)&math.MaxUint32%uint64(m.Partitions)) + 1
}

// The parameters of 64-bit FNV-1a: https://www.isthe.com/chongo/tech/comp/fnv
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// hash goes on with the FNV-1a of what came before.
func hash[text string | []byte](sum uint64, s text) uint64 {
	for i := range len(s) {
		sum = (sum ^ uint64(s[i])) * fnvPrime
	}
	return sum
}

// ID returns the partition of the task with an ID. The tasks of a schedule lie where the schedule does. It is not ok for a task that the
// dispatcher made for itself: such a task may lie in any.
func (m Map) ID(id string) (partition int, ok bool) {
	if m.Partitions < 2 {
		return 1, true
	}
	if strings.HasPrefix(id, task.Own) {
		return 0, false
	}
	if schedule := queue.ScheduleOf(id); schedule != "" {
		return m.Of(schedule), true
	}
	return m.Of(id), true
}

// Task returns the partition of a task that a caller adds: that of its key; else of its type, if that has a limit; else of its unique
// key; else of its ID. It returns 0 for a task with none of them, which may lie in any. It refuses a task two of whose names lie
// apart, because then one of the rules could not hold.
func (m Map) Task(t *task.Task) (partition int, err error) {
	if m.Partitions < 2 {
		return 1, nil
	}
	var by, name string
	for _, n := range [...]struct{ field, name string }{{"key", t.Key}, {"type", m.limited(t.Type)}, {"unique", t.UniqueKey}, {"id", t.ID}} {
		if n.name == "" {
			continue
		}
		p := m.Of(n.name)
		if n.field == "id" {
			p, _ = m.ID(n.name)
		}
		switch {
		case p == 0:
		case partition == 0:
			partition, by, name = p, n.field, n.name
		case p != partition:
			return 0, &task.FieldError{
				Field: n.field, Value: n.name, Reason: fmt.Sprintf("lies in partition %d of %d, and %s %q in partition %d", p, m.Partitions, by, name, partition),
				Hint: "use only one of key, unique key, ID and a type with a limit: two of them hold only within one partition",
			}
		}
	}
	return partition, nil
}

func (m Map) limited(typ string) string {
	if m.Limited == nil || !m.Limited(typ) {
		return ""
	}
	return typ
}

// IDOf returns a new ID for a task that has none, which lies where the task does. It refuses a task that [Map.Task] refuses.
func (m Map) IDOf(t *task.Task, now time.Time) (string, error) {
	partition, err := m.Task(t)
	if err != nil || partition == 0 {
		return task.NewID(now), err
	}
	return m.NewID(now, partition), nil
}

// Turn returns an ID for a task that has none: id, or one that differs from it in its last two letters, and lies where the task does. Equal
// arguments give equal IDs. It refuses a task that [Map.Task] refuses.
func (m Map) Turn(t *task.Task, id string) (string, error) {
	partition, err := m.Task(t)
	if err != nil || partition == 0 {
		return id, err
	}
	if turned, ok := m.turned(id, partition); ok {
		id = turned
	}
	return id, nil
}

// IDs returns a function that makes IDs of one partition.
func (m Map) IDs(partition int) func(now time.Time) string {
	return func(now time.Time) string { return m.NewID(now, partition) }
}

// NewID returns a new ID for a task in a partition: one that [task.NewID] could have made, and that [Map.ID] finds there.
func (m Map) NewID(now time.Time, partition int) string {
	for {
		if id, ok := m.turned(task.NewID(now), partition); ok {
			return id
		}
	}
}

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// turned returns an ID that differs in its last two letters at most, and lies in a partition. There is one as a rule.
func (m Map) turned(id string, partition int) (string, bool) {
	var space [64]byte
	b := append(space[:0], id...)
	head, tail := b[:len(b)-2], b[len(b)-2:]
	sum := hash(fnvOffset, head)
	first, last := strings.IndexByte(digits, tail[0]), strings.IndexByte(digits, tail[1])
	for i := range len(digits) {
		tail[0] = digits[(first+i)%len(digits)]
		near := (sum ^ uint64(tail[0])) * fnvPrime
		for j := range len(digits) {
			tail[1] = digits[(last+j)%len(digits)]
			if m.at((near^uint64(tail[1]))*fnvPrime) == partition {
				if i+j == 0 {
					return id, true
				}
				return string(b), true
			}
		}
	}
	return "", false
}
