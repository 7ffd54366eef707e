package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/task"
)

// Config says who may use a [Server], and what it refuses. The zero value serves this machine everything.
type Config struct {
	// Namespace is the one that is served. The document and the logs show it.
	Namespace string
	// Version is that of the program, for the document.
	Version string
	// Limits are those of the tasks that requests add.
	Limits task.Limits
	// CheckPayload, if not nil, refuses a payload that the handler of its type would refuse.
	CheckPayload func(t *task.Task) error
	// Tokens returns the tokens that are let in. It is called for each request, so tokens change without a restart. If it is
	// nil or returns none, this machine alone is let in, under a loopback name, and may do everything. So a token that is withdrawn
	// stays in the list, without a secret.
	Tokens func() []Token
	// BehindProxy says that a proxy in front decides who is let in, and for which hosts: without tokens, everybody who reaches
	// the server may do everything.
	BehindProxy bool
	// Ready returns nil if this process leads or works, or could. Otherwise it says why not. Nil: it is always ready.
	Ready func() error
	// Metrics serves /metrics. Nil: there are none.
	Metrics http.Handler
	// Dashboard serves the pages for people, outside /v1, /docs, /metrics and the probes. [IdentityOf] tells it who
	// asks. Nil: there are none.
	Dashboard Pages
	// Log receives errors that are not the caller's. The zero Logger discards them.
	Log zerolog.Logger

	sessions admin.Sessions // nil: nobody notes sessions, and each goes on to its end
}

// Server serves an [admin.Admin]. It is an [http.Handler], safe for concurrent use.
type Server struct {
	admin    *admin.Admin
	cfg      Config
	mux      *http.ServeMux
	huma     huma.API
	document []byte // OpenAPI in JSON
	stream   *stream
	shared   *readings
	handler  http.Handler
}

// New returns a server of what people do with a namespace.
func New(a *admin.Admin, cfg Config) (*Server, error) {
	own := *a
	own.Tasks = derived{a.Tasks}
	shared := &readings{}
	own.Activity, own.Instances = sharing{newLone(a.Activity), shared}, sharingInstances{a.Instances, shared}
	s := &Server{admin: &own, cfg: cfg, mux: http.NewServeMux(), stream: newStream(own.Activity), shared: shared}
	s.cfg.sessions = a.Sessions
	s.huma = humago.New(s.mux, humaConfig(&s.cfg))
	s.schedules()
	s.tasks()
	s.bulk()
	s.instances()
	s.activity()
	s.me()
	var err error
	if s.document, err = s.describe(); err != nil {
		return nil, err
	}
	s.pages()
	s.handler = guard(&s.cfg, remember(a.Answers, s.streamed(s.fallback(s.mux))))
	return s, nil
}

// Close ends the streams of events, which would otherwise go on until their clients leave.
func (s *Server) Close() { s.stream.Close() }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	s.handler.ServeHTTP(w, r)
}

// humaConfig sets no path of huma's own and no transformer: onbeat serves the document and the page itself.
func humaConfig(cfg *Config) huma.Config {
	registry := huma.NewMapRegistry("#/components/schemas/", schemaName)
	for from, to := range schemas {
		registry.RegisterTypeAlias(from, to)
	}
	version := cfg.Version
	if version == "" {
		version = "dev"
	}
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "onbeat", Version: version,
				Description: "Runs tasks on schedule, and each slot exactly as often as its schedule says.",
			},
			Components: &huma.Components{
				Schemas:         registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}},
			},
			Security: []map[string][]string{{"token": {}}, {}},
		},
		Formats: map[string]huma.Format{
			"application/json": {Marshal: marshal, Unmarshal: json.Unmarshal},
			"json":             {Marshal: marshal, Unmarshal: json.Unmarshal}, // application/problem+json
		},
		DefaultFormat: "application/json",
	}
}

// marshal writes JSON as the onbeat command does.
func marshal(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// route is one operation of the API.
type route struct {
	id, method, path string
	summary          string
	role             Role
	status           int          // of success; 0 means 200
	body             reflect.Type // of the request; nil: it has none
	errors           []int        // besides those that each route has
	mayBeEmpty       bool         // the body may be left out
	also             reflect.Type // of what another success answers, with 200
	streams          bool         // with Accept: text/event-stream it answers without an end
}

// reply is a JSON body.
type reply[T any] struct{ Body T }

// add registers a route. fn gets the parameters; see [read] for the body.
func add[I, O any](s *Server, r route, fn func(context.Context, *I) (*O, error)) {
	op := huma.Operation{
		OperationID: r.id, Method: r.method, Path: "/v1" + r.path, Summary: r.summary, DefaultStatus: r.status,
		Tags: []string{strings.SplitN(strings.TrimPrefix(r.path, "/"), "/", 2)[0]}, Metadata: map[string]any{"role": r.role},
		Extensions:         map[string]any{"x-onbeat-role": string(r.role)},
		SkipValidateParams: true, // the parameters refuse in the words of the onbeat command
		Responses:          s.problems(&r),
	}
	if r.method == http.MethodPost {
		least, most := 1, longestKey
		op.Parameters = []*huma.Param{{
			Name: keyHeader, In: "header", Description: "Sent again with the same key within a day, the request is answered as before, and nothing is done again.",
			Schema: &huma.Schema{Type: huma.TypeString, MinLength: &least, MaxLength: &most},
		}}
	}
	op.Middlewares = huma.Middlewares{s.admit, checkBody}
	huma.Register(s.huma, op, func(ctx context.Context, in *I) (*O, error) {
		if r.method != http.MethodGet {
			defer s.shared.wrote.Add(1) // also if it failed: it may have changed something
		}
		who := identityOf(ctx)
		out, err := fn(admin.By(ctx, who.Name), in)
		if err == nil {
			if shown, ok := any(out).(withheld); ok && !who.Role.May(Operator) {
				shown.withhold()
			}
			return out, nil
		}
		p, known := problemOf(err)
		if !known {
			s.cfg.Log.Error().Err(err).Str("operation", r.id).Msg("request failed")
		}
		return nil, p
	})
	schemas := s.huma.OpenAPI().Components.Schemas
	if r.also != nil {
		s.operation(&r).Responses["200"] = &huma.Response{
			Description: "OK", Content: map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(r.also, true, "")}},
		}
	}
	if r.streams {
		s.describeStream(s.operation(&r))
	}
	if r.body != nil {
		s.operation(&r).RequestBody = &huma.RequestBody{
			Required: !r.mayBeEmpty,
			Content:  map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(r.body, true, r.id+"Body")}},
		}
	}
}

// describeStream documents what an operation does with Accept: text/event-stream.
func (s *Server) describeStream(op *huma.Operation) {
	text := &huma.Schema{Type: huma.TypeString}
	op.Description = "With Accept: text/event-stream, events as they happen. ?event= names the kinds of events to send, as often as there are kinds. With ?status=true, the status in short comes too, every few seconds, in messages of the event `status`."
	op.Parameters = append(op.Parameters, &huma.Param{Name: "Last-Event-ID", In: "header", Schema: text, Description: "A stream begins after this event."})
	op.Responses["200"].Content["text/event-stream"] = &huma.MediaType{Schema: text}
}

// operation returns a registered operation of the document.
func (s *Server) operation(r *route) *huma.Operation {
	item := s.huma.OpenAPI().Paths["/v1"+r.path]
	switch r.method {
	case http.MethodGet:
		return item.Get
	case http.MethodPost:
		return item.Post
	case http.MethodPut:
		return item.Put
	}
	return item.Delete
}

// problems documents the errors of a route.
func (s *Server) problems(r *route) map[string]*huma.Response {
	codes := append([]int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests,
		http.StatusInternalServerError, http.StatusServiceUnavailable}, r.errors...)
	if strings.Contains(r.path, "{") {
		codes = append(codes, http.StatusNotFound)
	}
	if r.method == http.MethodPost {
		codes = append(codes, http.StatusUnprocessableEntity) // an Idempotency-Key of another request
	}
	if r.method != http.MethodGet {
		codes = append(codes, http.StatusRequestTimeout, http.StatusUnprocessableEntity, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	schema := s.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Problem](), true, "Problem")
	out := map[string]*huma.Response{}
	for _, code := range codes {
		out[statusText(code)] = &huma.Response{
			Description: http.StatusText(code), Content: map[string]*huma.MediaType{problemJSON: {Schema: schema}},
		}
	}
	return out
}
