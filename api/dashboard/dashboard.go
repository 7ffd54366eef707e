package dashboard

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"github.com/onbeat/onbeat/api"
)

//go:embed templates/*.html
var templates embed.FS

// Config says what the pages show of the server that they are on.
type Config struct {
	Namespace string
	Version   string
	// Tokens reports whether the API has tokens, so that a browser can be signed in and out.
	Tokens func() bool
}

// Dashboard serves the pages. It is an [api.Pages], safe for concurrent use.
type Dashboard struct {
	cfg    Config
	assets assets
	mux    *http.ServeMux
}

// page is one of the pages: its name is that of its template and of its module.
type page struct {
	Name  string
	Path  string // a path that ends with a slash goes on with the name of a thing, but for the overview
	Title string
	Menu  bool   // it is in the menu
	of    string // the page in the menu to which it belongs
	uses  string // a template that it shares with other pages
}

// list has the pages, in the order of the menu.
var list = []page{
	{Name: "overview", Path: "/", Title: "Overview", Menu: true},
	{Name: "beat", Path: "/beat", Title: "Beat", Menu: true},
	{Name: "trends", Path: "/trends", Title: "Trends", Menu: true},
	{Name: "schedules", Path: "/schedules", Title: "Schedules", Menu: true},
	{Name: "schedule", Path: "/schedules/", Title: "Schedule", of: "schedules", uses: "definition"},
	{Name: "new-schedule", Path: "/new-schedule", Title: "New schedule", of: "schedules", uses: "definition"},
	{Name: "tasks", Path: "/tasks", Title: "Tasks", Menu: true},
	{Name: "task", Path: "/tasks/", Title: "Task", of: "tasks"},
	{Name: "dead", Path: "/dead", Title: "Dead letters", Menu: true},
	{Name: "enqueue", Path: "/enqueue", Title: "Enqueue", Menu: true},
	{Name: "instances", Path: "/instances", Title: "Instances", Menu: true},
	{Name: "events", Path: "/events", Title: "Events", Menu: true},
	{Name: "audit", Path: "/audit", Title: "Audit", Menu: true},
	{Name: "login", Path: "/login", Title: "Sign in"},
}

// pattern is where the page is, for [http.ServeMux].
func (p *page) pattern() string {
	switch {
	case p.Path == "/":
		return "/{$}"
	case strings.HasSuffix(p.Path, "/"):
		return p.Path + "{name}"
	}
	return p.Path
}

const assetsPath = "/assets/"

// New reads the pages. It fails if a template is wrong, which a test would have shown.
func New(cfg Config) (*Dashboard, error) {
	d := &Dashboard{cfg: cfg, mux: http.NewServeMux()}
	var err error
	if d.assets, err = packedAssets(); err != nil {
		return nil, err
	}
	for i := range list {
		p := &list[i]
		t, err := d.templateOf(p)
		if err != nil {
			return nil, fmt.Errorf("the page %s: %w", p.Name, err)
		}
		d.mux.HandleFunc(p.pattern(), func(w http.ResponseWriter, r *http.Request) { d.show(w, r, &view{Page: *p}, t) })
	}
	d.mux.Handle(assetsPath, http.StripPrefix(assetsPath, http.HandlerFunc(d.assets.serve)))
	return d, nil
}

func (d *Dashboard) templateOf(p *page) (*template.Template, error) {
	names := []string{"templates/layout.html", "templates/parts.html", "templates/" + p.Name + ".html"}
	if p.uses != "" {
		names = append(names, "templates/"+p.uses+".html")
	}
	return template.New("layout.html").Funcs(template.FuncMap{"asset": d.assets.url}).ParseFS(templates, names...)
}

// Patterns returns where there are pages and assets.
func (d *Dashboard) Patterns() []string {
	patterns := []string{assetsPath}
	for i := range list {
		patterns = append(patterns, list[i].pattern())
	}
	return patterns
}

// view is what a template gets.
type view struct {
	Page      page
	Pages     []page
	Namespace string
	Version   string
	Who       api.Identity
	SignOut   bool // there is a session to end
}

// May reports whether the one who looks may do what needs a role.
func (v *view) May(role api.Role) bool { return v.Who.Role.May(role) }

// Current says how an entry of the menu stands to the page: it is the page, or that to which the page belongs.
func (v *view) Current(entry page) string {
	switch entry.Name {
	case v.Page.Name:
		return "page"
	case v.Page.of:
		return "true"
	}
	return ""
}

// policy lets a page load what this server has, and nothing else. Colours and places of marks are set by scripts through the
// object model, which it allows.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// ServeHTTP serves a page or an asset. [api.IdentityOf] the request says who looks.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.mux.ServeHTTP(w, r) }

// show shows a page: v says which.
func (d *Dashboard) show(w http.ResponseWriter, r *http.Request, v *view, t *template.Template) {
	v.Pages, v.Namespace, v.Version, v.Who = list, d.cfg.Namespace, d.cfg.Version, api.IdentityOf(r.Context())
	v.SignOut = d.cfg.Tokens != nil && d.cfg.Tokens()
	var body bytes.Buffer
	if err := t.Execute(&body, v); err != nil {
		http.Error(w, "this page cannot be shown: a bug", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Vary", "Accept-Encoding")
	if !takesGzip(r) { // a page has no secret and nothing of the request, so its compressed length tells nothing
		_, _ = body.WriteTo(w)
		return
	}
	h.Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	_, _ = body.WriteTo(z)
	_ = z.Close()
}
