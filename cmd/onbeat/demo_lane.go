package main

import (
	"fmt"
	"slices"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/conformance"
	"github.com/onbeat/onbeat/internal/trial"
)

// demoLane shows one release, and the instance that runs it.
type demoLane struct {
	release  string
	starts   int
	instance *trial.Process // nil before the first start
	state    string         // as the picture shows it
}

// start starts an instance of the lane's release.
func (l *demoLane) start(s *conformance.Stage) (err error) {
	l.starts++
	l.state = "starting"
	l.instance, err = s.Start(fmt.Sprintf("%s-%d", l.release, l.starts), l.release)
	return err
}

// see updates the lane's state from the signals that its instance got and from what Redis reports of it.
func (l *demoLane) see(list []admin.Instance) {
	if l.instance == nil {
		return
	}
	switch told := l.instance.Told(); {
	case told == trial.SigKill:
		l.state = "killed"
	case told == trial.SigStop:
		l.state = "frozen"
	case told == trial.SigTerm && l.instance.HasExited():
		l.state = "stopped"
	case told == trial.SigTerm:
		l.state = "draining"
	default:
		at := slices.IndexFunc(list, func(i admin.Instance) bool { return i.PID == l.instance.PID() })
		if at >= 0 {
			l.state = stateInLane(list[at])
		}
	}
}

func stateInLane(i admin.Instance) string {
	switch {
	case i.Leader:
		return "leads"
	case i.State == "ready":
		return "stands by"
	}
	return i.State
}
