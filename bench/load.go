package main

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"
)

// load is the processor time that the whole machine has used so far, and what of it was this process's, in seconds. What its host
// gave to others while it wanted a processor counts as used.
type load struct {
	all, own float64
	at       time.Time
}

// ticks is how many of /proc/stat's are a second, on every Linux that Go runs on.
const ticks = 100

func readLoad() load {
	l := load{at: time.Now()}
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := bytes.Cut(b, []byte("\n"))
	var user, nice, system, idle, iowait, irq, softirq, steal float64
	if _, err := fmt.Sscanf(string(line), "cpu %f %f %f %f %f %f %f %f", &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal); err == nil {
		l.all = (user + nice + system + irq + softirq + steal) / ticks
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err == nil {
		l.own = time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
	}
	return l
}

// others is how many cores were busy since then with nothing of the bench, if what it measured used so many µs. False if the time was
// too short for the machine's clock to tell.
func (l load) others(used float64) (float64, bool) {
	now := readLoad()
	seconds := now.at.Sub(l.at).Seconds()
	if l.all == 0 || seconds < 1 {
		return 0, false
	}
	return max(0, (now.all-l.all)-(now.own-l.own)-used/1e6) / seconds, true
}
