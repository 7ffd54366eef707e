package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/precise"
)

// load says how busy the machine was during a story.
type load struct {
	Stall float64 `json:"stall_ms"` // the longest time for which this process was not woken although it should have been
	Busy  float64 `json:"busy"`     // cores, of all programs
}

// starved is the stall from which on a story says nothing: half of the time that a beat of a second may be off its grid.
const starved = 100 * time.Millisecond

// watch watches the machine until ctx ends.
func watch(ctx context.Context) <-chan load {
	found := make(chan load, 1)
	go func() {
		var l load
		from, busy := time.Now(), busyTime()
		const each = 10 * time.Millisecond
		for ctx.Err() == nil {
			asleep := time.Now()
			precise.Sleep(each)
			l.Stall = max(l.Stall, float64((time.Since(asleep)-each).Microseconds())/1000)
		}
		l.Busy = (busyTime() - busy) / time.Since(from).Seconds()
		found <- l
	}()
	return found
}

// busyTime is how many seconds the cores of this machine have been busy.
func busyTime() (sum float64) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		if n, err := strconv.ParseFloat(field, 64); err == nil && i != 4 && i != 5 && i < 9 { // idle, iowait; and guests, which count as user
			sum += n / 100
		}
	}
	return sum
}
