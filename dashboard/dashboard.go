package dashboard

import (
	"bytes"
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

// Dashboard serves the pages. It is an [http.Handler], safe for concurrent use.
type Dashboard struct {
	cfg    Config
	pages  map[string]*template.Template
	assets assets
}

// page is one of the pages: its name is that of its template and of its module.
type page struct {
	Name, Path, Title string
	Menu              bool // it is in the menu
}

// list has the pages, in the order of the menu.
var list = []page{
	{"overview", "/", "Overview", true},
	{"beat", "/beat", "Beat", true},
	{"schedules", "/schedules", "Schedules", true},
	{"schedule", "/schedules/", "Schedule", false},
	{"new-schedule", "/new-schedule", "New schedule", false},
	{"tasks", "/tasks", "Tasks", true},
	{"task", "/tasks/", "Task", false},
	{"dead", "/dead", "Dead letters", true},
	{"enqueue", "/enqueue", "Enqueue", true},
	{"instances", "/instances", "Instances", true},
	{"events", "/events", "Events", true},
	{"audit", "/audit", "Audit", true},
	{"login", "/login", "Sign in", false},
}

// New reads the pages. It fails if a template is wrong, which a test would have shown.
func New(cfg Config) (*Dashboard, error) {
	d := &Dashboard{cfg: cfg, pages: map[string]*template.Template{}}
	var err error
	if d.assets, err = packedAssets(); err != nil {
		return nil, err
	}
	for _, p := range list {
		t, err := template.New("layout.html").Funcs(template.FuncMap{"asset": d.assets.url}).
			ParseFS(templates, "templates/layout.html", "templates/parts.html", "templates/definition.html", "templates/"+p.Name+".html")
		if err != nil {
			return nil, fmt.Errorf("the page %s: %w", p.Name, err)
		}
		d.pages[p.Name] = t
	}
	return d, nil
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

// policy lets a page load what this server has, and nothing else. Colours and places of marks are set by scripts through the
// object model, which it allows.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// ServeHTTP serves a page or an asset. [api.IdentityOf] the request says who looks.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, ok := strings.CutPrefix(r.URL.Path, "/assets/"); ok {
		d.assets.serve(w, r, name)
		return
	}
	p := pageOf(r.URL.Path)
	if p == nil {
		http.NotFound(w, r)
		return
	}
	v := &view{Page: *p, Pages: list, Namespace: d.cfg.Namespace, Version: d.cfg.Version, Who: api.IdentityOf(r.Context())}
	v.SignOut = d.cfg.Tokens != nil && d.cfg.Tokens()
	var body bytes.Buffer
	if err := d.pages[p.Name].Execute(&body, v); err != nil {
		http.Error(w, "this page cannot be shown: a bug", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	_, _ = body.WriteTo(w)
}

// ofAThing reports whether the path of the page goes on with the name of a thing.
func (p *page) ofAThing() bool { return p.Path != "/" && strings.HasSuffix(p.Path, "/") }

// pageOf returns the page of a path.
func pageOf(path string) *page {
	for i := range list {
		p := &list[i]
		if p.ofAThing() && strings.HasPrefix(path, p.Path) && len(path) > len(p.Path) || !p.ofAThing() && path == p.Path {
			return p
		}
	}
	return nil
}
