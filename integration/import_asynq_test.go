package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
)

// All that waits in asynq moves, and nothing else: a server of asynq that works meanwhile and onbeat run each task once between them. A
// move that is repeated moves nothing again.
func TestImport_movesTheTasksOfAsynq(t *testing.T) {
	t.Parallel()
	w, server := rig.Private(t)
	opt := asynq.RedisClientOpt{Addr: server.Addr()}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	client := asynq.NewClient(opt)
	defer client.Close()
	enqueue := func(typ, payload string, options ...asynq.Option) {
		t.Helper()
		if _, err := client.EnqueueContext(t.Context(), asynq.NewTask(typ, []byte(payload)), options...); err != nil {
			t.Fatal(err)
		}
	}
	const n = 700 // more than a batch
	for i := range n {
		enqueue("mail", fmt.Sprintf(`{"n":%d}`, i))
		enqueue("mail", fmt.Sprintf(`{"n":%d}`, i), asynq.ProcessIn(time.Hour), asynq.Queue("low"), asynq.MaxRetry(3), asynq.Timeout(time.Minute))
	}
	enqueue("mail", "not JSON")
	enqueue("once", `{}`, asynq.TaskID("own"), asynq.Unique(time.Hour))
	enqueue("mail", `{}`, asynq.Deadline(time.Now().Add(time.Hour)), asynq.Queue("low"))

	scheduler := asynq.NewScheduler(opt, &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel})
	for _, e := range []struct{ spec, typ string }{{"@every 90s", "poll"}, {"CRON_TZ=Asia/Seoul 30 2 * * *", "report"}, {"@every 90s", "notjson"}} {
		payload := map[string]string{"notjson": "x"}[e.typ]
		if _, err := scheduler.Register(e.spec, asynq.NewTask(e.typ, []byte(payload)), asynq.Queue("low"), asynq.MaxRetry(2), asynq.Retention(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := scheduler.Start(); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, time.Minute, func() bool { return rdb.ZCard(t.Context(), "asynq:schedulers").Val() == 1 }, "asynq tells of its schedules")
	code, out, errs := w.Try("import", "asynq")
	for _, want := range []string{"every: 90s", `cron: "30 2 * * *"`, "timezone: Asia/Seoul", "queue: low", "max_attempts: 3"} {
		if !strings.Contains(out, want) && !strings.Contains(out, strings.Replace(want, "90s", "1m30s", 1)) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if code != 1 || !strings.Contains(errs, "1403 tasks wait") || !strings.Contains(errs, "left out: notjson") || !strings.Contains(errs, "Retention") {
		t.Errorf("%d %s", code, errs)
	}
	scheduler.Shutdown()

	// A server of asynq works on the pending tasks all the while.
	ran := make(chan string, 2*n)
	worker := asynq.NewServer(opt, asynq.Config{Concurrency: 2, Queues: map[string]int{"default": 1}, LogLevel: asynq.FatalLevel})
	if err := worker.Start(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		ran <- id
		time.Sleep(time.Millisecond)
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	code, _, errs = w.Try("import", "asynq", "--apply", "--move")
	worker.Shutdown()
	close(ran)
	if code != 1 || !strings.Contains(errs, "has a deadline") {
		t.Errorf("%d %s", code, errs)
	}
	here := map[string]int{} // by queue
	keys := rdb.HKeys(t.Context(), "onbeat:{"+w.NS+"}:tasks").Val()
	for _, id := range keys {
		here[strings.Split(id, ":")[1]]++
	}
	there := 0
	for id := range ran {
		there++
		if slices.Contains(keys, "asynq:default:"+id) {
			t.Errorf("%s ran there and is here", id)
		}
	}
	left := int(rdb.LLen(t.Context(), "asynq:{default}:pending").Val())
	if here["default"]+there+left != n+2 || here["default"] == 0 || here["low"] != n {
		t.Errorf("%v are here, asynq ran %d and has %d", here, there, left)
	}
	if rdb.Exists(t.Context(), "asynq:{default}:onbeat", "asynq:{low}:onbeat").Val() != 0 || rdb.LLen(t.Context(), "asynq:{low}:pending").Val() != 1 {
		t.Error("asynq keeps tasks that were moved, or lost the one with a deadline")
	}
	_, _, errs = w.Try("import", "asynq", "--apply", "--move")
	if !strings.Contains(errs, "moved 0 tasks") {
		t.Errorf("a second move: %s", errs)
	}
}

// A move that was killed after it had taken tasks, and after it had added some of them, is ended by the next one, and adds none twice.
func TestImport_goesOnWithWhatItHolds(t *testing.T) {
	t.Parallel()
	w, server := rig.Private(t)
	opt := asynq.RedisClientOpt{Addr: server.Addr()}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	client := asynq.NewClient(opt)
	defer client.Close()
	for _, id := range []string{"a", "b", "c"} {
		if _, err := client.EnqueueContext(t.Context(), asynq.NewTask("mail", nil), asynq.TaskID(id)); err != nil {
			t.Fatal(err)
		}
	}
	// a and b were taken, and a was added too.
	for _, id := range []string{"a", "b"} {
		rdb.LRem(t.Context(), "asynq:{default}:pending", -1, id)
		rdb.ZAdd(t.Context(), "asynq:{default}:onbeat", redis.Z{Member: id})
	}
	w.Must("enqueue", "mail", "--id", "asynq:default:a")
	code, _, errs := w.Try("import", "asynq", "--apply", "--move")
	if code != 0 || !strings.Contains(errs, "moved 3 tasks") {
		t.Errorf("%d %s", code, errs)
	}
	list := w.Must("tasks", "list", "--json")
	for _, id := range []string{"a", "b", "c"} {
		if strings.Count(list, `"asynq:default:`+id+`"`) != 1 {
			t.Errorf("%s is not here once: %s", id, list)
		}
	}
	if keys := rdb.Keys(t.Context(), "asynq:*:t:*").Val(); len(keys) != 0 {
		t.Errorf("asynq keeps %v", keys)
	}
}
