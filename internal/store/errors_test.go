package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

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
		{replyError("OOM command not allowed when used memory > 'maxmemory'. script: f2, on @user_script:1."), task.ErrFull},
		{replyError("ERR Error running script (call to f_ab): @user_script:1: -OOM command not allowed when used memory > 'maxmemory'."), task.ErrFull},
		{replyError("LOADING Redis is loading the dataset in memory"), task.ErrBusy},
		{replyError("READONLY You can't write against a read only replica."), task.ErrBusy},
		{replyError("ERR Error running script (call to f_ab): @user_script:1: -READONLY You can't write against a read only replica."), task.ErrBusy},
		{replyError("CLUSTERDOWN The cluster is down"), task.ErrBusy},
		{replyError("TRYAGAIN Multiple keys request during rehashing of slot"), task.ErrBusy},
		{replyError("MOVED 7365 127.0.0.1:6379"), task.ErrBusy},
		{replyError("MASTERDOWN Link with MASTER is down"), task.ErrBusy},
		{replyError("BUSY Redis is busy running a script."), task.ErrBusy},
		{replyError("MISCONF Redis is configured to save RDB snapshots"), task.ErrBusy},
		{replyError("NOREPLICAS Not enough good replicas to write."), task.ErrBusy},
		{replyError("UNBLOCKED force unblock from blocking operation"), task.ErrBusy},
		{replyError("ERR max number of clients reached"), task.ErrBusy},
		{replyError("NOAUTH Authentication required."), task.ErrDenied},
		{replyError("WRONGPASS invalid username-password pair or user is disabled."), task.ErrDenied},
		{replyError("NOPERM this user has no permissions to run the 'evalsha' command"), task.ErrDenied},
		{replyError("ERR Protocol error: unauthenticated multibulk length"), task.ErrDenied},
		{replyError("WRONGTYPE Operation against a key"), store.ErrWrongType},
		{replyError("ERR The user executing the script can't run this command or subcommand script: 1, on @user_script:1."), task.ErrDenied},
		{replyError("ERR ACL failure in script: User app has no permissions to run the 'zadd' command script: on @user_script:1."), task.ErrDenied},
		{replyError("ERR Error running script (call to f_ab): @user_script:1: @user_script: 1: The user executing the script can't access at least one of the keys"), task.ErrDenied},
		{replyError("ERR unknown command 'X'"), nil},
		{replyError("ERR value says LOADING"), nil},
		{dial, task.ErrUnreachable},
		{fmt.Errorf("wrapped: %w", dial), task.ErrUnreachable},
		{io.EOF, task.ErrUnreachable},
		{io.ErrUnexpectedEOF, task.ErrUnreachable},
		{net.ErrClosed, task.ErrUnreachable},
		{redis.ErrPoolTimeout, task.ErrUnreachable},
		{redis.ErrClosed, task.ErrUnreachable},
		{context.DeadlineExceeded, task.ErrUnreachable},
		{context.Canceled, nil},
		{redis.Nil, nil},
		{errors.New("else"), nil},
		{nil, nil},
	}
	said := store.Classify(replyError("ERR unknown command `AUTH`, with args beginning with: `default` `hunter2` "))
	same(t, "a proxy that knows no AUTH", said.Error(), "unknown command `AUTH`")
	for _, tt := range tests {
		got := store.Classify(tt.err)
		if tt.want == nil && got != tt.err || tt.want != nil && !errors.Is(got, tt.want) || !errors.Is(got, tt.err) {
			t.Errorf("%v: got %v, want %v", tt.err, got, tt.want)
		}
		retry := tt.want == task.ErrUnreachable || tt.want == task.ErrBusy
		if store.Retryable(got) != retry {
			t.Errorf("%v: retryable = %v", tt.err, !retry)
		}
	}
	for err, want := range map[error]bool{dial: true, redis.ErrPoolTimeout: true, redis.ErrClosed: true, io.EOF: false, replyError("OOM x"): false} {
		same(t, fmt.Sprint("not sent: ", err), store.NotSent(store.Classify(err)), want)
	}
}

// The text of an error never shows what was passed along with AUTH.
func FuzzClassify(f *testing.F) {
	for _, s := range []string{"ERR unknown command 'AUTH', with args beginning with: 'hunter2'", "NOAUTH Authentication required.", "OOM x", "FENCED", "", "ERR "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		err := store.Classify(replyError(text))
		if err == nil {
			t.Fatalf("%q is no error any more", text)
		}
		command, args, cut := strings.Cut(text, ", with args beginning with")
		if cut && len(args) > 8 && !strings.Contains(command, args) && strings.Contains(err.Error(), args) {
			t.Fatalf("%q is shown as %q", text, err)
		}
	})
}

func TestLacksRight_isNotOfAPassword(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]bool{
		"NOPERM this user has no permissions to run the 'get' command":           true,
		"ERR The user executing the script can't run this command or subcommand": true,
		"NOPERM ACL failure in script: No permissions to access a key":           true,
		"ERR ACL failure in script: No permissions to access a key":              true,
		"WRONGPASS invalid username-password pair or user is disabled.":          false,
		"NOAUTH Authentication required.":                                        false,
		"ERR unknown command":                                                    false,
	} {
		if got := store.LacksRight(store.Classify(replyError(said))); got != want {
			t.Errorf("%s: %v", said, got)
		}
	}
	if store.LacksRight(errors.New("NOPERM")) {
		t.Error("an error that Redis did not answer with")
	}
}
