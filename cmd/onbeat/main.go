// Command onbeat keeps fixed-cadence jobs on the beat through every deploy. It has an instance that schedules and runs tasks, and
// tools to look at a namespace, fill it and repair it. See onbeat --help.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	_ "golang.org/x/crypto/x509roots/fallback" // the CAs of Mozilla, where the system has none: in a bare container
)

func main() {
	redis.SetLogger(&logging.VoidLogger{}) // our own errors report each problem once
	// Because we ask for SIGPIPE, a write to a closed pipe fails and does not end the process: an instance goes on when the reader of
	// its log leaves. If we ignored SIGPIPE, the commands that we start would ignore it too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx := untilTold(context.Background(), signals, os.Stderr, os.Exit)
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr))
}
