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
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals // somebody is in a hurry
		os.Exit(exitFailed)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}
