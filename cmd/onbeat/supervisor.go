package main

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
)

// supervisor tells systemd how the instance is, by the protocol of sd_notify(3): when it is ready, that it lives, and that it
// stops.
type supervisor struct {
	socket   string        // where systemd listens
	watchdog time.Duration // systemd ends a process that is silent for so long; 0: it does not

	unready func() error                // why the instance is not ready. It asks the process, and not Redis
	alive   func(context.Context) error // why the process does not answer, which a restart would end
	log     zerolog.Logger
}

// newSupervisor returns nil if no supervisor listens.
func newSupervisor(env func(string) string, log zerolog.Logger) *supervisor {
	s := &supervisor{socket: env("NOTIFY_SOCKET"), log: log}
	if s.socket == "" {
		return nil
	}
	if us, err := strconv.ParseInt(env("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		if pid := env("WATCHDOG_PID"); pid == "" || pid == strconv.Itoa(os.Getpid()) { // else it watches another process
			s.watchdog = time.Duration(us) * time.Microsecond
		}
	}
	return s
}

// supervisorEvery is how often the supervisor looks, unless the watchdog wants to hear more often.
const supervisorEvery = time.Second

// run tells systemd of the instance until done, also while the instance drains after stopping has ended.
func (s *supervisor) run(stopping, done context.Context) {
	every := supervisorEvery
	if s.watchdog > 0 {
		every = min(every, s.watchdog/3)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	told, ready, stop := "", false, stopping.Done()
	for {
		var lines []string
		status := "ready"
		if err := s.unready(); err != nil { // a process that hangs never comes back from here
			status = err.Error()
		} else if !ready {
			ready, lines = true, append(lines, "READY=1")
		}
		if stopping.Err() != nil && stop != nil {
			stop, lines = nil, append(lines, "STOPPING=1")
		}
		if status != told {
			told, lines = status, append(lines, "STATUS="+strings.ReplaceAll(status, "\n", " "))
		}
		if s.watchdog > 0 {
			call, end := context.WithTimeout(done, s.watchdog/3)
			if err := s.alive(call); err == nil {
				lines = append(lines, "WATCHDOG=1")
			} else if done.Err() == nil {
				s.log.Error().Err(err).Msg("the API of this process does not answer: systemd will restart it")
			}
			end()
		}
		if len(lines) > 0 {
			s.tell(strings.Join(lines, "\n"))
		}
		select {
		case <-tick.C:
		case <-stop:
		case <-done.Done():
			return
		}
	}
}

func (s *supervisor) tell(text string) {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.socket, Net: "unixgram"}) // a name that begins with @ is in no folder
	if err == nil {
		_, err = conn.Write([]byte(text))
		_ = conn.Close()
	}
	if err != nil {
		s.log.Warn().Err(err).Msg("could not tell systemd how the instance is")
	}
}
