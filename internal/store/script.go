package store

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name Redis gives a script; no secret hangs on it
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var files embed.FS

// Script is one atomic step: a Lua source known to Redis by its hash. Make it once, at start.
type Script struct {
	Name     string
	src      string
	sha      string
	fleeting bool
	claims   bool
	looks    bool
}

// NewScript joins lib.lua, the libraries that the script needs, and its source. Every source begins with a header that names
// keys, arguments, return and complexity. The script happens whole or not at all if it notes an undo for each of its writes
// (see lib.lua), or if it begins with [Careful], which notes them.
func NewScript(name string, sources ...string) *Script {
	src := source("lib") + "\nreturn whole(function()\n" + strings.Join(sources, "\n") + "\nend)"
	sum := sha1.Sum([]byte(src)) //nolint:gosec // as above
	s := &Script{Name: name, src: src, sha: hex.EncodeToString(sum[:])}
	made = append(made, s)
	return s
}

// Fleeting marks a script that writes nothing, or whose writes are repeated anyway, like those of a heartbeat: its calls do not wait
// for replicas, whatever the [Durability].
func (s *Script) Fleeting() *Script {
	s.fleeting = true
	return s
}

// Claiming marks a script whose caller begins the tasks that it returns. While the primary is suspect, its calls return
// [ErrSuspect].
func (s *Script) Claiming() *Script {
	s.claims = true
	return s
}

// Looking marks a script that is called often enough to notice with it that the primary loses a replica.
func (s *Script) Looking() *Script {
	s.looks = true
	return s
}

// made lists all scripts. They are made at start, so no goroutine reads the list while a script is added.
var made []*Script

// Scripts returns all scripts of the program, for callers that try whether Redis takes them.
func Scripts() []*Script { return slices.Clone(made) }

// Load makes a script known to Redis ahead of its first call.
func (s *Script) Load(ctx context.Context, rdb redis.UniversalClient) error {
	if err := rdb.ScriptLoad(ctx, s.src).Err(); err != nil {
		return fmt.Errorf("load script %s: %w", s.Name, Classify(err))
	}
	return nil
}

// Sources returns a function that reads a Lua file of a package by name, from the folder scripts that the package embeds.
func Sources(files embed.FS) func(name string) string {
	return func(name string) string {
		b, err := files.ReadFile("scripts/" + name + ".lua")
		if err != nil {
			panic(err) // a missing embedded file cannot get past any test
		}
		return string(b)
	}
}

var source = Sources(files)

// Careful is the Lua (careful.lua) that makes the source behind it note an undo for each of its writes.
var Careful = source("careful")

// Run calls the script by its hash, and once by its source if Redis does not know it. The script runs at most once. If the
// reply is lost, Run returns the error, because only the caller knows whether it is safe to call again.
func (s *Script) Run(ctx context.Context, rdb redis.UniversalClient, keys []string, args []any) (any, error) {
	v, err := untilMoved(ctx, func() (any, error) {
		v, err := s.call(ctx, rdb, "evalsha", s.sha, keys, args)
		if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
			v, err = s.call(ctx, rdb, "eval", s.src, keys, args)
		}
		return v, err
	})
	err = Classify(err)
	if errors.Is(err, ErrWrongType) {
		err = &WrongTypeError{err, keys}
	}
	return v, err
}

func (s *Script) call(ctx context.Context, rdb redis.UniversalClient, command, body string, keys []string, args []any) (any, error) {
	all := make([]any, 3, 3+len(keys)+len(args))
	all[0], all[1], all[2] = command, body, len(keys)
	for _, k := range keys {
		all = append(all, k)
	}
	all = append(all, args...)
	cmd := redis.NewCmd(ctx, all...)
	if len(keys) > 0 {
		cmd.SetFirstKeyPos(3)
	}
	_ = rdb.Process(ctx, once{cmd, s})
	v, err := cmd.Result()
	if err != nil && Retryable(Classify(err)) && !OfMove(err) {
		reloadState(ctx, rdb)
	}
	return v, err
}

// reloadState makes a cluster client ask which node took the place of another. By itself the client asks only if it may send
// the command again.
func reloadState(ctx context.Context, rdb any) {
	if c, ok := rdb.(interface{ ReloadState(ctx context.Context) }); ok {
		c.ReloadState(ctx)
	}
}

// once is a command that go-redis does not send again after the reply was lost.
type once struct {
	*redis.Cmd
	script *Script
}

func (once) NoRetry() bool { return true }
