package api

import (
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// instances registers the routes that show and direct instances.
func (s *Server) instances() {
	post, all := http.MethodPost, "/instances"
	add(s, route{id: "listInstances", method: http.MethodGet, path: all, summary: "List the registered instances", role: Viewer}, s.listInstances)
	add(s, route{id: "promoteRelease", method: post, path: all + "/promote", summary: "Make a release the newest, so that it leads", role: Admin, body: reflect.TypeFor[promoteBody](), errors: []int{http.StatusNotFound}}, s.promote)
	add(s, route{id: "pauseInstances", method: post, path: all + "/pause", summary: "Pause all instances: no instance begins a task", role: Operator, body: reflect.TypeFor[pauseBody]()}, s.pauseInstances)
	add(s, route{id: "resumeInstances", method: post, path: all + "/resume", summary: "End a pause before its time", role: Operator}, s.resumeInstances)
	add(s, route{id: "resignInstance", method: post, path: all + "/{id}/resign", summary: "Make an instance give up the lead and work on", role: Admin}, s.resign)
	add(s, route{id: "drainInstance", method: post, path: all + "/{id}/drain", summary: "Make an instance finish its runs and leave", role: Admin}, s.drain)
}

func (s *Server) listInstances(ctx context.Context, in *Aged) (*reply[admin.InstanceList], error) {
	ctx, err := in.within(ctx)
	if err != nil {
		return nil, err
	}
	list, err := s.admin.Instances.List(ctx)
	return &reply[admin.InstanceList]{list}, err
}

// promoteBody names a release.
type promoteBody struct {
	Release string `json:"release"`
}

func (s *Server) promote(ctx context.Context, _ *struct{}) (*reply[admin.Promoted], error) {
	var b promoteBody
	if err := read(ctx, &b, "promotion"); err != nil {
		return nil, err
	}
	if err := task.CheckID("release", b.Release); err != nil {
		return nil, located(err, "")
	}
	p, err := s.admin.Instances.Promote(ctx, b.Release)
	return &reply[admin.Promoted]{p}, err
}

// pauseBody says how long no task begins.
type pauseBody struct {
	For    schedule.Duration `json:"for" doc:"At most 10m."`
	Reason string            `json:"reason,omitempty" maxLength:"200" doc:"Shown wherever the pause is."`
}

func (s *Server) pauseInstances(ctx context.Context, _ *struct{}) (*reply[admin.Pause], error) {
	var b pauseBody
	if err := read(ctx, &b, "pause"); err != nil {
		return nil, err
	}
	if d := time.Duration(b.For); d <= 0 || d > instance.LongestPause {
		return nil, located(&task.FieldError{Field: "for", Value: d.String(), Reason: "out of range", Hint: "1ms to " + instance.LongestPause.String()}, "")
	}
	p, err := s.admin.Instances.Pause(ctx, time.Duration(b.For), b.Reason)
	return &reply[admin.Pause]{p}, located(err, "")
}

func (s *Server) resumeInstances(ctx context.Context, _ *struct{}) (*reply[admin.Pause], error) {
	if err := readNothing(ctx); err != nil {
		return nil, err
	}
	return &reply[admin.Pause]{}, s.admin.Instances.Resume(ctx)
}

func (s *Server) resign(ctx context.Context, in *identified) (*reply[admin.Result], error) {
	return ask(ctx, in.ID, s.admin.Instances.Resign, "resigned")
}

func (s *Server) drain(ctx context.Context, in *identified) (*reply[admin.Result], error) {
	return ask(ctx, in.ID, s.admin.Instances.Drain, "drains")
}

// ask has an instance do something. The word says that it does.
func ask(ctx context.Context, id string, do func(context.Context, string) error, word string) (*reply[admin.Result], error) {
	if err := readNothing(ctx); err != nil {
		return nil, err
	}
	return &reply[admin.Result]{admin.Result{Name: id, Result: word}}, do(ctx, id)
}
