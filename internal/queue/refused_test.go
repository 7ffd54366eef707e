package queue_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

var called = regexp.MustCompile(`(?:redis\.p?call|many)\("([A-Z]+)"`)

// commandsOf are the commands that scripts name.
func commandsOf(t *testing.T) (list []string) {
	t.Helper()
	for _, pattern := range []string{"scripts/*.lua", "../store/scripts/*.lua", "../../instance/scripts/*.lua"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range names {
			body, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range called.FindAllStringSubmatch(string(body), -1) {
				list = append(list, m[1])
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// sourcesOf are the files of which a script is made; of its libraries all that it may have.
func sourcesOf(t *testing.T, script string) (list []string) {
	t.Helper()
	patterns := []string{"../store/scripts/lib.lua", "scripts/lib*.lua", "scripts/" + script + "*.lua"}
	if _, err := os.Stat("../../instance/scripts/" + script + ".lua"); err == nil {
		patterns = append(patterns, "../../instance/scripts/lib*.lua", "../../instance/scripts/"+script+".lua")
	}
	if script == "move" {
		patterns = append(patterns, "scripts/enqueue.lua")
	}
	if !slices.Contains([]string{"cycle", "enqueue", "advance", "move"}, script) {
		patterns = append(patterns, "../store/scripts/careful.lua")
	}
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			body, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, string(body))
		}
	}
	return list
}

// everyThird says which of hundreds of pairs are tried: of each command or key, and of each call, some. A soak tries all.
func everyThird() func() bool {
	n := 0
	return func() bool {
		n++
		return n%testredis.Size(3, 1) == 0
	}
}

// Redis may refuse any command of a script to its user: still each task is in exactly one place.
func TestScripts_refusedCommandsLoseNothing(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	sources := map[string]string{}
	for _, c := range calls {
		sources[c.script] = strings.ToLower(strings.Join(sourcesOf(t, c.script), "\n"))
	}
	tried := everyThird()
	for _, command := range commandsOf(t) {
		narrow := testredis.User(t, admin, []string{"~*", "&*", "+@all", "-" + strings.ToLower(command)})
		for _, c := range calls {
			if !strings.Contains(sources[c.script], `"`+strings.ToLower(command)+`"`) || !tried() {
				continue
			}
			t.Run(command+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				s := newStock(t, admin, narrow)
				before := s.contents()
				s.nothingDone(t, c.call(t.Context(), s), before)
			})
		}
	}
}

// The same for a key that something else than onbeat has made one of another type.
func TestScripts_keysOfAnotherTypeLoseNothing(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	k := queue.Partition{Namespace: "ns"}.Keys()
	kinds := []string{k.Tasks, k.Lanes, k.Held, k.Active, k.Dead, k.Done, k.Cancel, k.Watch, k.Orphans, k.Schedules, k.Last, k.Behind, k.Changed,
		k.Retired, k.Retirements, k.Revisions, k.Instances, k.Members, k.Details, k.Leader, k.Releases, k.Trial, k.Strikes, k.Declarers, k.Asked, k.Meta, k.Events, k.History,
		k.Answers, k.Answered, k.Bulk, k.Notices, k.Health, k.Pauses,
		k.Due(lane("job")), k.Due(lane("other")), k.Due(lane("limited")), k.Running(1), k.Running(2)}
	named, tried := keysNamed(t, admin), everyThird()
	for _, kind := range kinds {
		for _, c := range calls {
			what := kind[strings.LastIndex(kind, "}:")+2:]
			if first, _, _ := strings.Cut(what, ":"); !named[c.name][first] || !tried() {
				continue
			}
			t.Run(what+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				s := newStock(t, admin, admin)
				key := s.part.Prefix() + what
				switch what {
				case "running:1":
					key = s.keys.Running(s.a.gen)
				case "running:2":
					key = s.keys.Running(s.lost)
				}
				ctx, before := t.Context(), s.contents()
				had := s.rdb.Exists(ctx, key).Val() == 1
				if had {
					s.must(s.rdb.Rename(ctx, key, key+":aside").Err())
				}
				s.must(s.rdb.Set(ctx, key, "of another type", 0).Err())
				err := c.call(ctx, s)
				s.must(s.rdb.Del(ctx, key).Err())
				if had {
					s.must(s.rdb.Rename(ctx, key+":aside", key).Err())
				}
				s.nothingDone(t, err, before)
			})
		}
	}
}

// keysNamed says which keys each call names, by the first word of theirs.
func keysNamed(t *testing.T, admin *redis.Client) map[string]map[string]bool {
	t.Helper()
	named := map[string]map[string]bool{}
	for _, c := range calls {
		heard := redis.NewClient(admin.Options())
		k := &keyHook{keys: map[string]bool{}}
		heard.AddHook(k)
		s := newStock(t, admin, heard)
		if err := c.call(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := heard.Close(); err != nil {
			t.Fatal(err)
		}
		if len(k.keys) == 0 {
			t.Fatalf("%s names no key", c.name)
		}
		named[c.name] = k.keys
	}
	return named
}

// keyHook notes the keys that scripts are called with.
type keyHook struct{ keys map[string]bool }

func (*keyHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*keyHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (k *keyHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); len(args) > 3 && strings.HasPrefix(strings.ToLower(fmt.Sprint(args[0])), "eval") {
			n, _ := strconv.Atoi(fmt.Sprint(args[2]))
			for _, key := range args[3 : 3+n] {
				_, rest, _ := strings.Cut(fmt.Sprint(key), "}:")
				first, _, _ := strings.Cut(rest, ":")
				k.keys[first] = true
			}
		}
		return next(ctx, cmd)
	}
}

// A user may lack both the right to write and the right to take back what was written. Still no task runs that was refused.
func TestEnqueue_refusedWithItsUndoAddsNothingThatRuns(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	for _, write := range []string{"hset", "zadd", "set", "zrange"} {
		for _, remove := range []string{"hdel", "zrem", "del"} {
			narrow := testredis.User(t, admin, []string{"~*", "&*", "+@all", "-" + write, "-" + remove})
			for name, opts := range map[string][]task.Option{"plain": nil, "unique": {task.Unique("u", time.Hour)}} {
				t.Run(write+" and "+remove+"/"+name, func(t *testing.T) {
					t.Parallel()
					s := newStock(t, admin, narrow)
					if _, _, err := s.n.q.Enqueue(t.Context(), []*task.Task{job("new", opts...)}, true); err == nil {
						if write != "set" || name != "plain" {
							t.Fatal("a user without the right added a task")
						}
						return
					}
					if s.rdb.HExists(t.Context(), s.keys.Tasks, "new").Val() {
						t.Error("the task was refused, and may run")
					}
					if r := s.a.cycle(20, s.lanes); slices.ContainsFunc(r.Claimed, func(c *task.Task) bool { return c.ID == "new" }) {
						t.Error("the task was refused, and ran")
					}
					if s.rdb.Exists(t.Context(), s.keys.Unique("u")).Val() != 0 {
						t.Error("a task that was refused holds the unique key")
					}
				})
			}
		}
	}
}
