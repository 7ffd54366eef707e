package model

import (
	"time"

	"github.com/onbeat/onbeat/task"
)

// two are an instance of an older release and one of a newer release.
var two = []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}}

var rooms = []*room{
	{
		// A rollout: which instance leads, in every order of joining, leaving, being lost and coming back.
		name: "registry", lead: "newest", consume: "newest", eager: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v1"}},
		joins: 5, want: 1,
		setup: []string{"a join", "a ready", "b join"},
		verbs: "join, ready, beat, resign, leave, open, crash, tick, brink, join lost, ready late",
		depth: 4, states: 2130,
	},
	{
		// An instance that is started again under its old ID, while calls of its earlier life are still on their way.
		name: "restarts", lead: "newest", consume: "newest", eager: true,
		procs: []proc{{id: "a", release: "v1"}},
		tasks: map[string]*task.Task{"x": task.New("job", nil)},
		joins: 4, want: 1,
		setup: []string{"a join", "a ready", "enqueue x", "the client reads", "the client makes", "a read"},
		verbs: "join, crash, tick, ready, ready late, quit late, advance, open, declare, resign late, leave late, beat late, open, open late, declare late, advance late, take late, take, leave, resign",
		depth: 4, states: 1490,
	},
	{
		// The newest of four is lost, or quits: which instance leads next.
		name: "election", lead: "newest", consume: "release",
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v2"}, {id: "d", release: "v3"}},
		joins: 5, want: 1,
		setup: []string{"a join", "a ready", "b join", "b ready", "c join", "c ready", "d join", "d ready",
			"tick to the brink", "a beat", "b beat", "c beat"},
		verbs: "beat, resign, quit, leave, tick, join",
		depth: 4, states: 1250,
	},
	{
		// One release, whose first instance leads for as long as it can.
		name: "sticky", lead: "sticky", consume: "release", eager: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v1"}, {id: "c", release: "v1"}, {id: "d", release: "v2"}},
		joins: 5, want: 1,
		setup: opened("b join", "c join", "c ready", "d join", "tick to the brink", "a beat", "b beat", "d beat"),
		verbs: "beat, ready, resign, quit, leave, tick, join, open",
		depth: 4, states: 1060,
	},
	{
		// A leader that cannot schedule hands over, and comes back.
		name: "stand down", lead: "newest", consume: "release", eager: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v2", standby: true}},
		joins: 4, want: 1,
		setup: opened("b join", "c join", "c ready"),
		verbs: "stand down, stand down late, ready, beat, resign, tick, crash, join",
		depth: 4, states: 730,
	},
	{
		// An older release is lost. The newer one finds that out in one way or another, and the older comes back later.
		name: "forgotten", lead: "newest", consume: "newest", eager: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v3"}},
		joins: 5, want: 1,
		setup: opened("b join", "c join", "c ready", "a crash", "tick to the brink", "b beat", "c beat", "tick"),
		verbs: "beat, ready, quit, minute, join, crash",
		depth: 5, states: 2720,
	},
	{
		// Calls of a term that is over, and of a leader that leads again.
		name: "terms", lead: "newest", consume: "newest", eager: true,
		procs: two,
		joins: 3, want: 1,
		setup: opened("the client reads", "the client makes", "a read", "a declare", "b join"),
		verbs: "ready, resign, tick, beat, advance late, open late, define late, declare late, read, declare, define",
		depth: 5, states: 2180,
	},
	{
		// An instance is lost with all its runs, and two others take them back. An archive is told of each run.
		name: "lost", lead: "newest", consume: "newest", eager: true, archive: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v1"}},
		tasks: map[string]*task.Task{
			"x": keyed("x", "k", task.Wait), "y": task.New("rare", nil, task.MaxAttempts(1)), "z": keyed("z", "k", task.Wait),
		},
		joins: 4, want: 4,
		setup: opened("enqueue x", "enqueue y", "enqueue z", "the client reads", "the client makes", "a read", "a advance", "a take",
			"b join", "b ready", "c join", "tick to the brink", "b beat", "c beat", "tick", "c beat", "b beat"),
		verbs: "look, recover, recover one, beat, tick, take, settle, cancel",
		depth: 4, states: 2020,
	},
	{
		// Tasks that died, finished tasks that are kept, and unique tasks. An archive is told of each run.
		name: "ended", lead: "newest", consume: "newest", eager: true, archive: true,
		procs: two[:1],
		tasks: map[string]*task.Task{
			"x": task.New("job", nil), "y": task.New("job", nil),
			"u": task.New("job", nil, task.Unique("u", 1500*time.Millisecond)), "v": task.New("rare", nil, task.Unique("u", time.Second)),
		},
		joins: 1, want: 1,
		setup: opened("enqueue x", "a take", "enqueue y", "a die", "a keep"),
		verbs: "enqueue, cancel, forget, revive, tidy, tick, beat, take, settle",
		depth: 4, states: 360,
	},
	{
		// Lanes that stay empty are forgotten, and tasks come back to them.
		name: "lanes", lead: "newest", consume: "newest", eager: true,
		procs: two[:1],
		tasks: map[string]*task.Task{"x": task.New("job", nil), "y": task.New("rare", nil), "z": task.New("job", nil)},
		joins: 2, want: 1,
		setup: opened("enqueue x", "a take", "enqueue y", "a die", "enqueue z", "an hour passes", "a beat", "a join", "a ready", "a open"),
		verbs: "beat, take, tidy, hand back, look, recover, revive, enqueue",
		depth: 4, states: 50,
	},
	{
		// Three tasks of one key, each of which waits for the one before.
		name: "queue", lead: "newest", consume: "newest", eager: true,
		procs: two[:1],
		tasks: map[string]*task.Task{"x": keyed("x", "k", task.Wait), "y": keyed("y", "k", task.Wait), "z": keyed("z", "k", task.Wait)},
		joins: 1, want: 3,
		setup: opened("enqueue x", "a take", "enqueue y", "enqueue z"),
		verbs: "enqueue, cancel, take, settle, finish, return, die, tick, beat, tidy",
		depth: 5, states: 2360,
	},
	{
		// Releases that come, go and come back, and are lost for a while.
		name: "releases", lead: "sticky", consume: "release", eager: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v1", standby: true}},
		tasks: map[string]*task.Task{"x": task.New("job", nil)},
		joins: 6, want: 1,
		setup: opened("b join", "enqueue x"),
		verbs: "join, ready, beat, resign, leave, take, crash, minute, tick, open",
		depth: 4, states: 1560,
	},
	{
		// Tasks that are claimed, settled in every way, and lost with their instance.
		name: "tasks", lead: "newest", consume: "newest", eager: true,
		procs: two,
		tasks: map[string]*task.Task{"x": task.New("job", nil, task.MaxAttempts(2)), "y": task.New("rare", nil, task.MaxAttempts(1))},
		joins: 4, want: 2,
		setup: opened("enqueue x", "enqueue y", "b join", "b ready"),
		verbs: "join, beat, crash, tick, take, finish, keep, return, die, look, recover, recover one, revive, tidy, enqueue",
		depth: 5, states: 990,
	},
	{
		// Cycles whose replies are lost, and that come late.
		name: "replies", lead: "newest", consume: "all", eager: true,
		procs: two,
		tasks: map[string]*task.Task{"x": task.New("job", nil), "y": task.New("rare", nil)},
		joins: 4, want: 1,
		setup: opened("enqueue x", "enqueue y", "b join", "b ready"),
		verbs: "beat, tick, take, finish, return, look, recover, leave, resign, take lost, take late, finish lost, finish late, return lost, again",
		depth: 4, states: 2340,
	},
	{
		// A task that came back, and was claimed anew by a cycle with a lost reply: the settlement of its first run is void.
		name: "again", lead: "newest", consume: "newest", eager: true,
		procs: two[:1],
		tasks: map[string]*task.Task{"x": task.New("job", nil)},
		joins: 1, want: 1,
		setup: opened("enqueue x", "a take", "tick to the brink"),
		verbs: "beat, tick, take, return lost, return late, finish lost, again, settle",
		depth: 6, states: 330,
	},
	{
		// Tasks of one key, of which one may run at a time, with each policy for the others.
		name: "keys", lead: "newest", consume: "all", eager: true,
		procs: two,
		tasks: map[string]*task.Task{
			"w": keyed("w", "k", task.Wait), "s": keyed("s", "k", task.Skip), "q": keyed("q", "k", task.QueueUp), "r": keyed("r", "k", task.Replace),
		},
		joins: 2, want: 2,
		setup: opened("enqueue w", "a take", "b join", "b ready"),
		verbs: "enqueue, take, finish, die, return, cancel, tick, beat, look, recover, tidy",
		depth: 4, states: 1680,
	},
	{
		// Tasks of one key, some behind and some on time.
		name: "on time", lead: "newest", consume: "all", eager: true,
		procs: two[:1],
		tasks: map[string]*task.Task{
			"b": keyed("b", "k", task.Behind), "c": keyed("c", "k", task.Behind),
			"s": keyed("s", "k", task.Skip), "q": keyed("q", "k", task.QueueUp), "r": keyed("r", "k", task.Replace),
		},
		joins: 1, want: 3,
		setup: opened("enqueue b", "enqueue c", "a take", "tick to the brink"),
		verbs: "enqueue, take, finish, return, cancel, tick, beat",
		depth: 4, states: 1460,
	},
	{
		// A key of which two may run, and whose tasks wait in two lanes, one of which has a limit of its own.
		name: "line", lead: "newest", consume: "all", eager: true,
		procs: two,
		tasks: map[string]*task.Task{
			"v": pair("v", "job"), "w": pair("w", "job"), "x": pair("x", "rare"), "y": pair("y", "rare"), "z": pair("z", "job"),
		},
		joins: 3, want: 3,
		setup: opened("enqueue v", "enqueue w", "a take", "b join", "b ready", "enqueue x", "enqueue y", "tick to the brink", "enqueue z", "a take"),
		verbs: "take, finish, settle, return, die, cancel, beat, tidy",
		depth: 4, states: 2370,
	},
	{
		// A schedule with as many tasks as there are workers, and others that wait behind them.
		name: "crowd", lead: "newest", consume: "newest", eager: true,
		procs: two[:1],
		tasks: map[string]*task.Task{
			"s@a": task.New("job", nil), "s@b": task.New("job", nil), "s@c": task.New("job", nil), "s@r": task.New("rare", nil),
			"t@a": task.New("job", nil), "x": task.New("job", nil), "y": task.New("rare", nil),
		},
		joins: 1, want: 2, workers: 4,
		setup: opened("enqueue s@a", "a take", "enqueue s@b", "enqueue s@c"),
		verbs: "enqueue, take, finish, return, cancel, take late",
		depth: 4, states: 2420,
	},
	{
		// Which instance looks for due tasks, and when: a and c watch for each other, b for itself.
		name: "watches", lead: "sticky", consume: "release", eager: true, watched: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v1"}, {id: "c", release: "v1"}},
		tasks: map[string]*task.Task{
			"x": task.New("job", nil, task.In(700*time.Millisecond)), "w": task.New("job", nil),
			"y": task.New("rare", nil), "z": task.New("rare", nil),
		},
		joins: 3, want: 1,
		setup: opened("b join", "b ready", "c join", "a take", "b take", "c ready", "c take"),
		verbs: "enqueue, take, settle, finish, hand back, ready, resign",
		depth: 5, states: 2190,
	},
	{
		// One schedule, two instances that may lead, and a client that changes the schedule.
		name: "slots", lead: "newest", consume: "newest", eager: true,
		procs: two,
		joins: 4, want: 2,
		setup: opened("the client reads", "the client makes", "a read"),
		verbs: "join, ready, beat, advance, advance late, advance lost, read, tick, look at it, make, pause, resume, delete, alter, take, settle, cancel",
		depth: 5, states: 2550,
	},
	{
		// A schedule that is retired, and comes back or is made anew.
		name: "retired", lead: "newest", consume: "newest", eager: true,
		procs: two[:1],
		joins: 1, want: 1,
		setup: opened("the client reads", "the client makes", "a read", "a advance", "the client reads"),
		verbs: "advance, read, tick, look at it, make, pause, retire, restore, delete, take",
		depth: 6, states: 500,
	},
	{
		// A time with no leader: the gate, and the missed slots.
		name: "outage", lead: "newest", consume: "newest",
		procs: two,
		joins: 4, want: 2,
		setup: opened("the client reads", "the client makes", "a read", "a advance"),
		verbs: "join, ready, beat, crash, resign, tick, read, advance, catchup, open, take, settle, return, look, recover",
		depth: 6, states: 3610,
	},
	{
		// Missed slots that run behind those on time: pushed late, given up late, and given up by a client.
		name: "behind", lead: "newest", consume: "newest", eager: true,
		procs: two[:1],
		joins: 1, want: 1,
		setup: opened("the client reads", "the client makes", "a read", "tick to the brink", "a beat", "tick", "a beat",
			"tick to the brink", "a beat", "tick", "a beat", "a put off"),
		verbs: "beat, tick, read, advance, put off, repay, repay late, repay lost, give up, give up late, look at it, delete, alter, pause, make, " +
			"retire, restore",
		depth: 4, states: 1090,
	},
	{
		// Schedules that releases declare.
		name: "declared", lead: "newest", consume: "newest", eager: true,
		procs: two,
		joins: 4, want: 1,
		setup: opened("a read", "a declare", "b join"),
		verbs: "join, ready, beat, resign, leave, declare, declare late, read, define, define late, advance late, open late, tick, crash",
		depth: 5, states: 3440,
	},
	{
		// A release that was lost twice soon after becoming ready, and comes back beside another release.
		name: "loop", lead: "newest", consume: "newest", eager: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v2"}},
		joins: 6, want: 1,
		setup: opened("b join", "b ready", "b crash", "tick to the brink", "a beat", "tick", "a beat",
			"b join", "c join", "tick to the brink", "a beat", "b beat", "c beat"),
		verbs: "ready, beat, crash, tick, brink, quit, join, stand down",
		depth: 5, states: 1500,
	},
	{
		// The leader is suspected, rightly or wrongly, and comes back.
		name: "suspects", lead: "newest", consume: "newest", eager: true, looks: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v3"}},
		tasks: map[string]*task.Task{"x": task.New("job", nil)},
		joins: 5, want: 1,
		setup: opened("b join", "b ready", "enqueue x", "b take", "c join", "b beat", "a beat"),
		verbs: "suspect, suspect late, beat, ready, take, settle, crash, tick, brink",
		depth: 4, states: 2600,
	},
	{
		// The same while the leader pushes, declares and opens the gate, and its calls come late.
		name: "suspected leader", lead: "sticky", consume: "release", eager: true, looks: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v1"}},
		joins: 3, want: 2,
		setup: opened("the client reads", "the client makes", "a read", "a declare", "b join", "b ready", "a beat", "b beat"),
		verbs: "suspect, beat, advance, advance late, declare late, open late, define late, stand down, read, take, crash, resign, join",
		depth: 4, states: 1980,
	},
	{
		// Suspects beside instances that were asked to resign, are on probation, or stand down.
		name: "last resorts", lead: "newest", consume: "release", eager: true, looks: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v2"}},
		joins: 6, want: 1,
		setup: opened("b join", "b ready", "b crash", "tick to the brink", "a beat", "tick", "a beat",
			"b join", "c join", "c ready", "a beat", "b ready", "c beat"),
		verbs: "suspect, beat, ask to resign, ask to drain, stand down, ready, resign, quit, join, tick",
		depth: 3, states: 710,
	},
	{
		// One candidate looks out, whatever becomes of the leader.
		name: "monitor", lead: "sticky", consume: "newest", eager: true, looks: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v1"}},
		joins: 4, want: 1,
		setup: opened("b join", "b ready", "c join", "a beat"),
		verbs: "look out, beat, crash, moment, take, quit, ready",
		depth: 4, states: 1000,
	},
	{
		// The monitor looks with care at a leader that was suspected wrongly.
		name: "trusted", lead: "newest", consume: "newest", eager: true, looks: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}},
		tasks: map[string]*task.Task{"x": task.New("job", nil, task.In(100*time.Millisecond))},
		joins: 2, want: 1,
		setup: opened("b join", "b ready", "b beat", "a beat", "a suspect", "b beat", "a beat", "enqueue x"),
		verbs: "look out, look out lost, beat, crash, moment, take",
		depth: 5, states: 1120,
	},
	{
		// A person asks instances to resign and to drain.
		name: "asked", lead: "newest", consume: "release", eager: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v2"}},
		tasks: map[string]*task.Task{"x": task.New("job", nil)},
		joins: 5, want: 1,
		setup: opened("b join", "b ready", "c join", "enqueue x", "tick to the brink", "a beat", "b beat"),
		verbs: "ask to resign, ask to drain, ready, beat, take, crash, join, tick, leave, promote",
		depth: 3, states: 1500,
	},
	{
		// An instance that was asked to resign, and one that was asked to drain, lose their leases and come back.
		name: "asked before", lead: "newest", consume: "release", eager: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v2"}},
		joins: 6, want: 1,
		setup: opened("b join", "b ready", "c join", "c ready", "ask b to drain", "ask c to resign", "tick to the brink", "a beat", "tick", "a beat"),
		verbs: "beat, join, ready, crash, ask to resign, leave, quit",
		depth: 4, states: 250,
	},
	{
		// A person promotes an older release.
		name: "promoted", lead: "newest", consume: "release", eager: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v1"}},
		tasks: map[string]*task.Task{"x": task.New("job", nil)},
		joins: 4, want: 1,
		setup: opened("c join", "c ready", "b join", "b ready", "a declare", "enqueue x", "tick to the brink", "a beat", "b beat"),
		verbs: "promote, declare, resign, beat, take, join, tick",
		depth: 4, states: 900,
	},
	{
		// An instance is lost while it drains: that counts as leaving.
		name: "drained", lead: "newest", consume: "newest", eager: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v3"}},
		joins: 5, want: 1,
		setup: opened("b join", "b ready", "c join", "c ready", "a resign", "b crash", "tick to the brink", "c beat"),
		verbs: "join, beat, ready, quit, tick",
		depth: 4, states: 50,
	},
	{
		// The newest instance that declared is lost and may come back, while one of its release and one of an older are there.
		name: "undone", lead: "newest", consume: "newest", eager: true,
		procs: []proc{{id: "a", release: "v1"}, {id: "b", release: "v2"}, {id: "c", release: "v2"}},
		joins: 5, want: 1,
		setup: opened("a declare", "c join", "c ready", "b join", "b ready", "b declare", "tick to the brink", "a beat", "c beat"),
		verbs: "join, beat, ready, declare, resign, leave, tick, minute, crash",
		depth: 5, states: 3000,
	},
}
