// Command onbeat keeps fixed-cadence jobs on the beat through every deploy: an instance that schedules and runs tasks,
// and the tools to look at, feed and mend a namespace. See onbeat --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

func main() {
	redis.SetLogger(&logging.VoidLogger{}) // what goes wrong is an error of ours, said once
	// With SIGPIPE asked for, a write to a closed pipe fails, and does not end the process: an instance whose log is not read any
	// more goes on. Ignored, it would stay ignored in the commands that we start.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx := untilTold(context.Background(), signals, os.Stderr, os.Exit)
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}
