// Command fanout makes many tasks of one: a letter for each reader, added in batches.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

type issue struct {
	Number  string `json:"number"`
	Readers int    `json:"readers"`
}

type letter struct {
	Issue  string `json:"issue"`
	Reader int    `json:"reader"`
}

// batch is how many letters are added at a time.
const batch = 1000

// fan adds the letters of an issue. The ID of a letter says whose it is: a run that is repeated adds only those that are missing.
func fan(d *onbeat.Dispatcher) func(ctx context.Context, i issue) error {
	return func(ctx context.Context, i issue) error {
		for from := 0; from < i.Readers; from += batch {
			var tasks []*task.Task
			for reader := from; reader < min(from+batch, i.Readers); reader++ {
				tasks = append(tasks, task.New("letter", letter{i.Number, reader}, task.ID(i.Number+"/"+strconv.Itoa(reader)), task.Keep(time.Hour)))
			}
			added, err := d.EnqueueAll(ctx, tasks)
			if err != nil {
				return err
			}
			for _, one := range added {
				if one.Err != nil && !errors.Is(one.Err, task.ErrDuplicate) {
					return one.Err
				}
			}
		}
		return nil
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	readers, err := strconv.Atoi(cmp.Or(os.Getenv("READERS"), "100000"))
	if err != nil {
		return err
	}
	rdb, err := onbeat.Dial(cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379/0"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: "letters", Concurrency: 200})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var sent atomic.Int64
	began := time.Now()
	d.Handle("issue", handlers.Typed(fan(d)))
	d.Handle("letter", handlers.Typed(func(context.Context, letter) error {
		if sent.Add(1) == int64(readers) {
			fmt.Printf("sent %d letters in %.1f s\n", readers, time.Since(began).Seconds())
			stop()
		}
		return nil
	}))
	if _, err := d.Enqueue(ctx, task.New("issue", issue{"2030-01", readers})); err != nil {
		return err
	}
	return d.Run(ctx)
}
