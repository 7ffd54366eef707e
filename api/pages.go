package api

import (
	"errors"
	"net/http"
	"path"
	"strings"

	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"
)

// Pages are for people: a handler that says where it has some.
type Pages interface {
	http.Handler
	// Patterns returns the paths that it serves, as [http.ServeMux] takes them, without a method.
	Patterns() []string
}

// pages registers the paths outside /v1: health, metrics, the document and its page.
func (s *Server) pages() {
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, "ok") })
	s.mux.HandleFunc("GET /readyz", s.readyz)
	s.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(s.document)
	})
	docs := docsPage()
	s.mux.Handle("GET /docs", docs)
	s.mux.Handle("GET /docs/", docs)
	if s.cfg.Metrics != nil {
		s.mux.Handle("GET /metrics", s.cfg.Metrics)
	}
	if s.cfg.Dashboard != nil {
		for _, pattern := range s.cfg.Dashboard.Patterns() {
			s.mux.Handle("GET "+pattern, s.cfg.Dashboard)
		}
	}
}

func answer(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(text + "\n"))
}

// readyz says whether this process is of use. It does not say whether another one leads.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	if s.cfg.Ready != nil {
		if err := s.cfg.Ready(); err != nil {
			write(w, (&Problem{Detail: sentence(err), wait: 1}).as(http.StatusServiceUnavailable, "unready"))
			return
		}
	}
	answer(w, "ready")
}

// docsPage serves the page of the document, whose assets are in the program.
func docsPage() http.Handler {
	ui := v5emb.NewHandlerWithConfig(swgui.Config{Title: "onbeat", SwaggerJSON: "/openapi.json", BasePath: "/docs/"})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		// The page has a script of its own in it, and its library makes styles.
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "+
			"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		ui.ServeHTTP(w, r)
	})
}

// fallback answers requests that no route does: an unknown path, and a method that a path does not have.
func (s *Server) fallback(next *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isClean(r.URL.EscapedPath()) {
			problem(w, http.StatusNotFound, errors.New("a path has no empty part and none that is . or .. (in a name, write %2F)"))
			return
		}
		if _, pattern := next.Handler(r); pattern != "" {
			next.ServeHTTP(w, r)
			return
		}
		probe := &probe{header: http.Header{}}
		next.ServeHTTP(probe, r)
		allow := probe.header.Get("Allow")
		switch {
		case allow == "":
			problem(w, http.StatusNotFound, errors.New("nothing is at "+strings.ToValidUTF8(r.URL.Path, "�")+" (see /docs)"))
		case r.Method == http.MethodOptions:
			w.Header().Set("Allow", allow+", OPTIONS")
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Allow", allow+", OPTIONS")
			problem(w, http.StatusMethodNotAllowed, errors.New("the method "+r.Method+" is not allowed here (allowed: "+allow+")"))
		}
	})
}

// isClean reports whether a path is as it is written. The mux sends clients that asked for another one elsewhere: a PUT of
// /v1/schedules/a/../b would change b.
func isClean(escaped string) bool {
	clean := path.Clean("/" + escaped)
	return escaped == clean || escaped == clean+"/"
}

// probe learns which methods a path has. It keeps no body.
type probe struct{ header http.Header }

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(int)             {}
