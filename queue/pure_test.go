package queue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

func TestParseNote(t *testing.T) {
	t.Parallel()
	tests := []struct {
		line string
		want queue.Note
	}{
		{"s@1700000000000 done 1 1700000000012", queue.Note{Schedule: "s", Slot: ms(1700000000000), Word: "done", Attempt: 1, Claimed: ms(1700000000012), TaskID: "s@1700000000000"}},
		{"a.b/c@5 failed 12 7", queue.Note{Schedule: "a.b/c", Slot: ms(5), Word: "failed", Attempt: 12, Claimed: ms(7), TaskID: "a.b/c@5"}},
		{"s!0001 lost 1 7", queue.Note{Word: "lost", Attempt: 1, Claimed: ms(7), TaskID: "s!0001"}},
		{"an id of words skipped overlap", queue.Note{Word: "skipped", Why: "overlap", TaskID: "an id of words"}},
		{"s@5 missed outage", queue.Note{Schedule: "s", Slot: ms(5), Word: "missed", Why: "outage", TaskID: "s@5"}},
		{"s@5 returned", queue.Note{Schedule: "s", Slot: ms(5), Word: "returned", TaskID: "s@5"}},
		{"s@5..9 missed 5", queue.Note{Schedule: "s", From: ms(5), To: ms(9), Word: "missed", Count: 5}},
		{"a..b@5..9 changed 5 every 1s to 2s", queue.Note{Schedule: "a..b", From: ms(5), To: ms(9), Word: "changed", Count: 5, Why: "every 1s to 2s"}},
		{"s@5..9 missed five", queue.Note{Word: "missed", Why: "five", TaskID: "s@5..9"}},
		{"", queue.Note{}},
		{"alone", queue.Note{TaskID: "alone"}},
	}
	for _, tt := range tests {
		if got := queue.ParseNote(tt.line); got != tt.want {
			t.Errorf("%q:\n got %+v\nwant %+v", tt.line, got, tt.want)
		}
	}
}

func FuzzParseNote(f *testing.F) {
	for _, s := range []string{"s@1 done 1 2", "s@1..2 missed 3 why", " ", "  ", "@", "s@..", "a b c d", "x 1 2", "s@-1..-2 w 9223372036854775808"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		n := queue.ParseNote(line)
		if n.TaskID != "" && !strings.HasPrefix(line, n.TaskID) {
			t.Errorf("%q: task %q", line, n.TaskID)
		}
		if n.TaskID == "" && line != "" && n.Schedule == "" {
			t.Errorf("%q is about nothing", line)
		}
		if n.Schedule != "" && n.TaskID != "" && task.SlotID(n.Schedule, n.Slot) != n.TaskID {
			t.Errorf("%q: slot %v of %q", line, n.Slot, n.Schedule)
		}
	})
}

func TestParseLane(t *testing.T) {
	t.Parallel()
	for _, l := range []queue.Lane{lane("job"), {Queue: "q.a", Priority: task.High, Type: "a:b/c"}, {Queue: "q", Priority: task.Low, Type: "t"}} {
		got, err := queue.ParseLane(l.String())
		if err != nil || got != l {
			t.Errorf("%v: got %v, %v", l, got, err)
		}
	}
	for _, s := range []string{"", "q", "q|normal", "q|urgent|t"} {
		if l, err := queue.ParseLane(s); err == nil {
			t.Errorf("%q was read as %v", s, l)
		}
	}
}

func TestPartition_names(t *testing.T) {
	t.Parallel()
	same(t, "prefix", queue.Partition{Namespace: "shop"}.Prefix(), "onbeat:{shop}:")
	same(t, "prefix", queue.Partition{Namespace: "shop", Number: 3}.Prefix(), "onbeat:{shop#3}:")
	for _, ns := range []string{"", "a{b", "a b", "a*", strings.Repeat("x", 129)} {
		if _, err := queue.New(nil, queue.Partition{Namespace: ns}, queue.Caps{}); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("namespace %q: %v", ns, err)
		}
	}
	same(t, "no time", queue.Ms(time.Time{}), 0)
	same(t, "no time", queue.FromMs(0), time.Time{})
	same(t, "a time", queue.FromMs(queue.Ms(ms(5))), ms(5))
}

// replyError is an error that Redis answered with.
type replyError string

func (e replyError) Error() string { return string(e) }
func (replyError) RedisError()     {}

func TestClassify(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Err: errors.New("connect: connection refused")}
	tests := []struct {
		err  error
		want error // nil: left as it is
	}{
		{replyError("FENCED instance a"), queue.ErrFenced},
		{replyError("NOTLEADER epoch 5"), queue.ErrNotLeader},
		{replyError("STALE 7"), queue.ErrStale},
		{replyError("ALIVE generation 7"), queue.ErrAlive},
		{replyError("OOM command not allowed when used memory > 'maxmemory'. script: f2, on @user_script:1."), queue.ErrFull},
		{replyError("ERR Error running script (call to f_ab): @user_script:1: -OOM command not allowed when used memory > 'maxmemory'."), queue.ErrFull},
		{replyError("LOADING Redis is loading the dataset in memory"), queue.ErrBusy},
		{replyError("READONLY You can't write against a read only replica."), queue.ErrBusy},
		{replyError("ERR Error running script (call to f_ab): @user_script:1: -READONLY You can't write against a read only replica."), queue.ErrBusy},
		{replyError("CLUSTERDOWN The cluster is down"), queue.ErrBusy},
		{replyError("TRYAGAIN Multiple keys request during rehashing of slot"), queue.ErrBusy},
		{replyError("MOVED 7365 127.0.0.1:6379"), queue.ErrBusy},
		{replyError("MASTERDOWN Link with MASTER is down"), queue.ErrBusy},
		{replyError("BUSY Redis is busy running a script."), queue.ErrBusy},
		{replyError("MISCONF Redis is configured to save RDB snapshots"), queue.ErrBusy},
		{replyError("NOREPLICAS Not enough good replicas to write."), queue.ErrBusy},
		{replyError("UNBLOCKED force unblock from blocking operation"), queue.ErrBusy},
		{replyError("ERR max number of clients reached"), queue.ErrBusy},
		{replyError("NOAUTH Authentication required."), queue.ErrDenied},
		{replyError("WRONGPASS invalid username-password pair or user is disabled."), queue.ErrDenied},
		{replyError("NOPERM this user has no permissions to run the 'evalsha' command"), queue.ErrDenied},
		{replyError("ERR Protocol error: unauthenticated multibulk length"), queue.ErrDenied},
		{replyError("WRONGTYPE Operation against a key"), queue.ErrWrongType},
		{replyError("ERR The user executing the script can't run this command or subcommand script: 1, on @user_script:1."), queue.ErrDenied},
		{replyError("ERR unknown command 'X'"), nil},
		{replyError("ERR value says LOADING"), nil},
		{dial, queue.ErrUnreachable},
		{fmt.Errorf("wrapped: %w", dial), queue.ErrUnreachable},
		{io.EOF, queue.ErrUnreachable},
		{io.ErrUnexpectedEOF, queue.ErrUnreachable},
		{net.ErrClosed, queue.ErrUnreachable},
		{redis.ErrPoolTimeout, queue.ErrUnreachable},
		{redis.ErrClosed, queue.ErrUnreachable},
		{context.DeadlineExceeded, queue.ErrUnreachable},
		{context.Canceled, nil},
		{redis.Nil, nil},
		{errors.New("else"), nil},
		{nil, nil},
	}
	said := queue.Classify(replyError("ERR unknown command `AUTH`, with args beginning with: `default` `hunter2` "))
	same(t, "a proxy that knows no AUTH", said.Error(), "unknown command `AUTH`")
	for _, tt := range tests {
		got := queue.Classify(tt.err)
		if tt.want == nil && got != tt.err || tt.want != nil && !errors.Is(got, tt.want) || !errors.Is(got, tt.err) {
			t.Errorf("%v: got %v, want %v", tt.err, got, tt.want)
		}
		retry := tt.want == queue.ErrUnreachable || tt.want == queue.ErrBusy
		if queue.Retryable(got) != retry {
			t.Errorf("%v: retryable = %v", tt.err, !retry)
		}
	}
	for err, want := range map[error]bool{dial: true, redis.ErrPoolTimeout: true, redis.ErrClosed: true, io.EOF: false, replyError("OOM x"): false} {
		same(t, fmt.Sprint("not sent: ", err), queue.NotSent(queue.Classify(err)), want)
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	var c queue.Clock
	if d := time.Until(c.Local(time.Now().Add(time.Hour))); d < 59*time.Minute || d > time.Hour {
		t.Errorf("the zero clock is off by %v", time.Hour-d)
	}
	if d := time.Since(c.Now()); d < 0 || d > time.Minute {
		t.Errorf("the zero clock is off by %v", d)
	}
	asked := time.Now()
	there := asked.Add(time.Hour) // a local clock an hour slow
	c.Set(asked, asked.Add(10*time.Millisecond), there)
	same(t, "local", c.Local(there.Add(time.Second)).Sub(asked), time.Second)
	if d := time.Until(c.Now()); d < 59*time.Minute || d > 61*time.Minute {
		t.Errorf("now is off by %v", d)
	}
}

// The clock goes by the fastest call, until another is as good or one of the two clocks was set.
func TestClock_goesByTheFastestCall(t *testing.T) {
	t.Parallel()
	start := time.Now()
	const hour, ms = time.Hour, time.Millisecond
	tests := []struct {
		name             string
		after, round, at time.Duration // of a second call: when, how long it took, when Redis read, by the first call's clock
		want             time.Duration // how much the clock is moved
	}{
		{"slower", time.Second, 5 * ms, time.Second + 4*ms, 0},
		{"faster", time.Second, ms, time.Second + ms, ms},
		{"as fast", time.Second, 2 * ms, time.Second - ms, -ms},
		{"slower, much later", time.Minute, 5 * ms, time.Minute + 4*ms, 4 * ms},
		{"set ahead", time.Second, 5 * ms, hour, hour - time.Second},
		{"set back", time.Second, 5 * ms, -hour, -hour - time.Second},
		{"set by a little more than both could be off", time.Second, 5 * ms, time.Second - 4*ms, -4 * ms},
	}
	for _, tt := range tests {
		var c queue.Clock
		c.Set(start, start.Add(2*ms), start)
		asked := start.Add(tt.after)
		c.Set(asked, asked.Add(tt.round), start.Add(tt.at))
		same(t, tt.name, -c.Local(start).Sub(start), tt.want)
	}
}

// What the scripts of instance cut the events to is the most that may be asked for.
func TestCaps_ofEventsAreThoseOfTheScripts(t *testing.T) {
	t.Parallel()
	lua, err := os.ReadFile("../instance/scripts/lib_elect.lua")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("local cap_events = %d ", queue.MaxEvents); !strings.Contains(string(lua), want) {
		t.Errorf("lib_elect.lua has no %q", want)
	}
	p := queue.Partition{Namespace: "x"}
	if _, err := queue.New(nil, p, queue.Caps{Events: queue.MaxEvents}); err != nil {
		t.Error(err)
	}
	const want = `keep.events "10001": out of range (1 to 10000, which is the default)`
	if _, err := queue.New(nil, p, queue.Caps{Events: queue.MaxEvents + 1}); !errors.Is(err, task.ErrInvalid) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
