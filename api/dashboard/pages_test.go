package dashboard

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/api"
	docs "github.com/onbeat/onbeat/internal/page"
)

func TestPages_areThereForEachRole(t *testing.T) {
	t.Parallel()
	tokens, local := open(t, everyRole()...), open(t)
	for i := range list {
		p := &list[i]
		for _, role := range []api.Role{api.Viewer, api.Operator, api.Admin, ""} {
			s, shown := tokens, role
			if role == "" {
				s, shown = local, api.Admin
			}
			all := elements(t, s.html(p, role))
			html := all[slices.IndexFunc(all, func(e *element) bool { return e.name == "html" })]
			title := all[slices.IndexFunc(all, func(e *element) bool { return e.name == "title" })]
			if p.Name == "login" && role != "" {
				shown = "" // it is open: it does not look who asks
			}
			if html.attr["data-page"] != p.Name || html.attr["data-role"] != string(shown) || !strings.HasPrefix(title.text, p.Title+" · ") {
				t.Errorf("%s for %q: %v %q", p.Name, role, html.attr, title.text)
			}
			ends := len(slices.DeleteFunc(all, func(e *element) bool { return e.attr["id"] != "signout" })) > 0
			if want := role != "" && p.Name != "login"; ends != want {
				t.Errorf("%s for %q: there is a session to end: %t, want %t", p.Name, role, ends, want)
			}
		}
	}
}

func TestPages_thatAreUnknownAreNotFound(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, path := range []string{"/nope", "/beat/", "/beat/x", "/schedules/", "/tasks/", "/schedules/a/b", "/overview", "/index.html", "/assets/", "/templates/layout.html", "/login/x"} {
		if w := s.ask(http.MethodGet, path, ""); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %.200s", path, w.Code, w.Body)
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		w := httptest.NewRecorder()
		if s.Dashboard.ServeHTTP(w, r); w.Code != http.StatusNotFound && path != "/schedules/a/b" { // a name may have a slash; the API's routes tell it by its escape
			t.Errorf("%s: the dashboard itself answers %d", path, w.Code)
		}
	}
	if w := s.ask(http.MethodPost, "/beat", "", "Content-Type", "application/json"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a POST: %d", w.Code)
	}
}

func TestPages_mayLoadWhatThisServerHasAndNothingElse(t *testing.T) {
	t.Parallel()
	s := open(t)
	for i := range list {
		h := s.ask(http.MethodGet, address(&list[i]), "").Header()
		sources := map[string]string{}
		for part := range strings.SplitSeq(h.Get("Content-Security-Policy"), ";") {
			name, from, _ := strings.Cut(strings.TrimSpace(part), " ")
			sources[name] = from
		}
		for name, want := range map[string]string{
			"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "connect-src": "'self'", "img-src": "'self' data:",
			"base-uri": "'none'", "form-action": "'self'", "frame-ancestors": "'none'",
		} {
			if sources[name] != want {
				t.Errorf("%s: %s %q, want %q", list[i].Name, name, sources[name], want)
			}
		}
		if len(sources) != 8 || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", list[i].Name, h)
		}
	}
}

// The policy would have the browser refuse them, and the page would be broken.
func TestPages_haveNoScriptAndNoStyleInThem(t *testing.T) {
	t.Parallel()
	s := open(t)
	for i := range list {
		for _, e := range elements(t, s.html(&list[i], "")) {
			for name := range e.attr {
				if name == "style" || strings.HasPrefix(name, "on") {
					t.Errorf("%s: <%s> has the attribute %s", list[i].Name, e.name, name)
				}
			}
			if e.name == "style" || e.name == "script" && (e.attr["src"] == "" || e.attr["type"] != "module" || strings.TrimSpace(e.text) != "") {
				t.Errorf("%s: <%s %v>%s", list[i].Name, e.name, e.attr, e.text)
			}
			if strings.HasPrefix(strings.ToLower(strings.TrimSpace(e.attr["href"])), "javascript:") {
				t.Errorf("%s: a link that is a script: %s", list[i].Name, e.attr["href"])
			}
		}
	}
	for _, name := range modules(t) {
		if at := unsafe.FindString(source(t, name)); at != "" {
			t.Errorf("%s: %s", name, at)
		}
	}
}

// unsafe is how a module would make HTML or code of a text, or a style that the policy refuses.
var unsafe = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|setHTMLUnsafe|\beval\(|new Function|setTimeout\(['"]|\bstyle: |setAttribute\('style'|setAttribute\('on`)

// elsewhere is an address with a host in it. A name of an XML namespace is no address.
var elsewhere = regexp.MustCompile(`(?i)\b(?:https?|wss?|ftp):(?://)?[^\s'"\x60]*|["'\x60(=]//[^\s'"\x60]*`)

func TestPages_nameNoOtherHost(t *testing.T) {
	t.Parallel()
	look := func(name, text string) {
		for _, at := range elsewhere.FindAllString(text, -1) {
			if at != "http://www.w3.org/2000/svg" {
				t.Errorf("%s: %s", name, at)
			}
		}
	}
	for _, from := range []fs.FS{templates, files} {
		seen := 0
		err := fs.WalkDir(from, ".", func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			text, err := fs.ReadFile(from, name)
			if name == "built/chart.js" { // the names of a library made short look like schemes
				text = regexp.MustCompile(`\b(?i:ws)s?:`).ReplaceAll(text, nil)
			}
			look(name, string(text))
			seen++
			return err
		})
		if err != nil || seen < 4 {
			t.Errorf("%d files: %v", seen, err)
		}
	}
}

func TestPages_escapeNames(t *testing.T) {
	t.Parallel()
	const hostile = `"'><script>alert(1)</script><img src=x onerror=alert(2)> {{.}} </title>` + "`"
	d, err := New(Config{Namespace: hostile, Version: hostile, Tokens: func() bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, api.Token{Name: hostile, Role: api.Admin, Secret: secretOf(api.Admin)})
	local := open(t)
	for i := range list {
		p := &list[i]
		if p.Name == "login" {
			continue
		}
		ownName := elements(t, s.html(p, api.Admin))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, address(p), http.NoBody)
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		for _, e := range slices.Concat(ownName, elements(t, w.Body.String())) {
			if e.name == "script" && e.attr["src"] == "" || e.name == "img" && e.attr["onerror"] != "" {
				t.Errorf("%s: a name became <%s>", p.Name, e.name)
			}
		}
		who := slices.IndexFunc(ownName, func(e *element) bool { return strings.HasPrefix(e.attr["class"], "who") })
		if who < 0 || strings.TrimSpace(ownName[who].text) != hostile {
			t.Errorf("%s: the name of the token is not shown as it is", p.Name)
		}
		if all := elements(t, w.Body.String()); !slices.ContainsFunc(all, func(e *element) bool { return e.attr["class"] == "namespace" && e.text == hostile }) {
			t.Errorf("%s: the namespace is not shown as it is", p.Name)
		}
		if want := len(elements(t, local.html(p, ""))) + 1; len(ownName) != want { // the button for signing out
			t.Errorf("%s: %d elements, want %d", p.Name, len(ownName), want)
		}
	}
}

func TestPages_withoutASessionLeadToSigningIn(t *testing.T) {
	t.Parallel()
	s := open(t, everyRole()...)
	for i := range list {
		p := &list[i]
		if p.Name == "login" {
			continue
		}
		from := address(p) + "?match=a%26b&to=//elsewhere.example"
		w := s.ask(http.MethodGet, from, "")
		to, err := url.Parse(w.Header().Get("Location"))
		if err != nil || w.Code != http.StatusSeeOther || to.Path != "/login" || to.Host != "" || to.Query().Get("next") != from {
			t.Errorf("%s: %d %q %v", from, w.Code, w.Header().Get("Location"), err)
		}
	}
	for _, path := range []string{"/login", s.mustURL("app.css"), s.mustURL("app.js")} {
		if w := s.ask(http.MethodGet, path, ""); w.Code != http.StatusOK {
			t.Errorf("%s, which signing in needs: %d", path, w.Code)
		}
	}
	// A program gets an answer that it can read, and so does a module.
	if w := s.ask(http.MethodGet, "/v1/tasks", "", "Accept", "application/json"); w.Code != http.StatusUnauthorized {
		t.Errorf("a call: %d", w.Code)
	}
	if w := s.ask(http.MethodGet, "/beat", "", "Cookie", s.session(api.Viewer).Name+"=1.x.x"); w.Code != http.StatusSeeOther {
		t.Errorf("a session that is none: %d", w.Code)
	}
}

// A link to this server must not lead those who sign in on to another one.
func TestSigningIn_leadsToNoOtherSite(t *testing.T) {
	t.Parallel()
	s := open(t, everyRole()...)
	for _, path := range []string{"//elsewhere.example/beat", "///elsewhere.example", "//elsewhere.example:80/..", `/\elsewhere.example`} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.URL.Path, r.Host, r.RemoteAddr = path, "localhost", "127.0.0.1:5"
		r.Header.Set("Accept", "text/html")
		w := httptest.NewRecorder()
		s.server.ServeHTTP(w, r)
		to, err := url.Parse(w.Header().Get("Location"))
		if err != nil || to.Host != "" || to.Path != "/login" {
			t.Errorf("%s: %q %v", path, to, err)
			continue
		}
		if next := to.Query().Get("next"); !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.HasPrefix(next, `/\`) {
			t.Errorf("%s: after signing in a browser would go to %s", path, next)
		}
	}
}

func (s *site) mustURL(name string) string {
	s.t.Helper()
	u, err := s.assets.url(name)
	if err != nil {
		s.t.Fatal(err)
	}
	return u
}

func TestPages_areInTheDocs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/dashboard.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## What each page shows\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var have []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([A-Z][\w ]*) \|`).FindAllStringSubmatch(table, -1) {
		have = append(have, m[1])
	}
	var want []string
	for _, p := range list {
		if p.Menu {
			want = append(want, p.Title)
		}
	}
	docs.Compare(t, "docs/dashboard.md", have, want)
}
