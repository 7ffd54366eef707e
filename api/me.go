package api

import (
	"context"
	"net/http"
)

// Me says who the sender of a request is.
type Me struct {
	Name      string   `json:"name"`
	Role      Role     `json:"role" enum:"viewer,operator,admin"`
	Namespace string   `json:"namespace,omitempty"`
	Version   string   `json:"version,omitempty"`
	Queues    []string `json:"queues,omitempty" doc:"The queues that the sender may add tasks to; none: all."`
	Types     []string `json:"types,omitempty" doc:"The types of tasks that the sender may add; none: all."`
}

func (s *Server) me() {
	add(s, route{id: "me", method: http.MethodGet, path: "/me", summary: "Show the holder of the token and its rights", role: Viewer}, s.whoami)
}

func (s *Server) whoami(ctx context.Context, _ *struct{}) (*reply[Me], error) {
	who := identityOf(ctx)
	return &reply[Me]{Me{
		Name: who.Name, Role: who.Role, Namespace: s.cfg.Namespace, Version: s.cfg.Version, Queues: who.Queues, Types: who.Types,
	}}, nil
}
