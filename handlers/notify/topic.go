package notify

import (
	"fmt"
	"slices"
	"strconv"
)

// Topic is what a message is about.
type Topic string

// The topics.
const (
	// Dead: the last attempt of a task failed, of a schedule or not.
	Dead Topic = "dead"
	// Missed: no instance led when a slot was due, and its schedule's policy does not run it.
	Missed Topic = "missed"
	// Stale: a schedule has not succeeded for [Target.Stale] times the time between two slots.
	Stale Topic = "stale"
	// Failing: [Target.Failing] runs of a schedule, or of a type, failed in a row.
	Failing Topic = "failing"
	// Recovered: a schedule or a type of which the target heard that it is failing or stale has been well for a whole window.
	Recovered Topic = "recovered"
	// Leader: another instance leads, none can, or the leader cannot schedule.
	Leader Topic = "leader"
	// Hung: all workers, or a run of a schedule, are held up for longer than the time between two slots.
	Hung Topic = "hung"
	// Unhandled: no instance handles the type of tasks that are due.
	Unhandled Topic = "unhandled"
	// Retired: the newest release does not declare a schedule.
	Retired Topic = "retired"
	// Paused: a schedule has been paused for more than a day; once a day.
	Paused Topic = "paused"
	// Lost: Redis lost writes.
	Lost Topic = "lost"
	// ArchiveBehind: the archive does not keep up, or has lost something.
	ArchiveBehind Topic = "archive_behind"

	// Unread: Redis had cut off what happened before it could be read, so that messages may be missing. Every target hears of it.
	Unread Topic = "unread"
	// Test: a person tries the target out.
	Test Topic = "test"
)

// Topics are those that a target can choose.
func Topics() []Topic {
	return append(slices.Clone(ofSchedules), Leader, Lost, ArchiveBehind)
}

// ofSchedules are the topics about schedules and tasks. The others are about the namespace.
var ofSchedules = []Topic{Dead, Missed, Stale, Failing, Recovered, Hung, Unhandled, Retired, Paused}

// chosen are the topics of a target that names none: all but changes of the leader, of which each rollout has one.
func chosen(schedules []string) []Topic {
	if len(schedules) > 0 {
		return ofSchedules
	}
	return append(slices.Clone(ofSchedules), Lost, ArchiveBehind)
}

// counted says of n things of a topic what happened to them.
func (t Topic) counted(n int64) string {
	of := func(one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return grouped(n) + " " + many
	}
	switch t {
	case Dead:
		return of("task is dead", "tasks are dead")
	case Missed:
		return of("slot was missed", "slots were missed")
	case Stale:
		return of("schedule is stale", "schedules are stale")
	case Failing:
		return of("schedule or type fails again and again", "schedules or types fail again and again")
	case Recovered:
		return of("schedule or type has recovered", "schedules or types have recovered")
	case Leader:
		return of("change of the leader", "changes of the leader")
	case Hung:
		return of("trouble: workers or a schedule hang", "troubles: workers or schedules hang")
	case Unhandled:
		return of("schedule or type has no handler", "schedules or types have no handler")
	case Retired:
		return of("schedule was retired", "schedules were retired")
	case Paused:
		return of("schedule has been paused for more than a day", "schedules have been paused for more than a day")
	case Lost:
		return "Redis lost data"
	case ArchiveBehind:
		return "news of the archive, which was behind or lost something"
	case Unread:
		return "messages may be missing: Redis had cut off what happened before it was read"
	case Test:
		return "a test of this target"
	}
	return of(string(t), string(t)) // of a newer release
}

// grouped writes a number with commas.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func knownTopic(t Topic) error {
	if slices.Contains(Topics(), t) {
		return nil
	}
	return refuse("on", string(t), "unknown topic", fmt.Sprint("one of ", list(Topics())))
}
