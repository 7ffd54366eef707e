package main

import (
	"context"
	"errors"
	"time"

	"github.com/hibiken/asynq"
)

// asynqJobs are the jobs as a PeriodicTaskManager asks for them.
type asynqJobs []*asynq.PeriodicTaskConfig

func (a asynqJobs) GetConfigs() ([]*asynq.PeriodicTaskConfig, error) { return a, nil }

// startAsynq runs a server and a PeriodicTaskManager in each replica, with Unique.
//
// The wiki says: "You have to ensure only a single scheduler is running for a schedule at a time, otherwise you'd end up with duplicate
// tasks" (https://github.com/hibiken/asynq/wiki/Periodic-Tasks). For several, its author advises a PeriodicTaskManager in each, and
// TaskID with Retention, because Unique "doesn't work well if the task gets processed quickly"
// (https://github.com/hibiken/asynq/issues/395). A retained task goes when the janitor looks, each 8 s by default, so that advice
// cannot keep the beats of this bench. Unique can: for four fifths of the interval, but a second at
// least, which asynq demands; and the runs take a tenth of a second at least.
//
// An empty queue is looked at each second by default, which is a whole interval here; so TaskCheckInterval is lower.
func startAsynq(_ context.Context, r *replica, run runner) (func() error, error) {
	redis := asynq.RedisClientOpt{Addr: r.Store}
	mux := asynq.NewServeMux()
	var jobs asynqJobs
	for _, j := range r.Jobs {
		mux.HandleFunc(j.Name, func(ctx context.Context, _ *asynq.Task) error {
			id, _ := asynq.GetTaskID(ctx)
			return run(ctx, j, id)
		})
		jobs = append(jobs, &asynq.PeriodicTaskConfig{
			Cronspec: "@every " + j.Every.String(), // it fires on whole seconds
			Task:     asynq.NewTask(j.Name, nil),
			Opts:     []asynq.Option{asynq.Unique(max(j.Every*4/5, time.Second))},
		})
	}
	server := asynq.NewServer(redis, asynq.Config{TaskCheckInterval: 50 * time.Millisecond, LogLevel: asynq.WarnLevel})
	periodic, err := asynq.NewPeriodicTaskManager(asynq.PeriodicTaskManagerOpts{
		RedisConnOpt: redis, PeriodicTaskConfigProvider: jobs, SchedulerOpts: &asynq.SchedulerOpts{LogLevel: asynq.WarnLevel},
	})
	if err != nil {
		return nil, err
	}
	return func() error {
		periodic.Shutdown()
		server.Shutdown()
		return nil
	}, errors.Join(server.Start(mux), periodic.Start())
}
