package dashboard

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/api"
	"github.com/onbeat/onbeat/internal/testredis"
)

// site is the dashboard on the API of a namespace of its own.
type site struct {
	*Dashboard
	t      testing.TB
	server *api.Server
}

// secretOf is the secret of the token of a role.
func secretOf(role api.Role) string { return "a secret of the " + string(role) }

// everyRole has a token of each role.
func everyRole() (list []api.Token) {
	for _, role := range []api.Role{api.Viewer, api.Operator, api.Admin} {
		list = append(list, api.Token{Name: "the " + string(role), Role: role, Secret: secretOf(role)})
	}
	return list
}

// open makes a site. It lets in the holders of the tokens, or, without tokens, this machine.
func open(t testing.TB, tokens ...api.Token) *site {
	t.Helper()
	m := testredis.Mini(t)
	namespace := testredis.Namespace(t)
	d, err := onbeat.New(m.Client, onbeat.Config{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := New(Config{Namespace: namespace, Version: "v1.2.3", Tokens: func() bool { return len(tokens) > 0 }})
	if err != nil {
		t.Fatal(err)
	}
	s, err := api.New(d.Admin(), api.Config{
		Namespace: namespace, Tokens: func() []api.Token { return tokens }, Dashboard: pages, Log: zerolog.New(zerolog.NewTestWriter(t)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &site{pages, t, s}
}

// ask sends a request as a browser does that opens a page. Role "" has no session.
func (s *site) ask(method, path string, role api.Role, headers ...string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, path, http.NoBody)
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5"
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	if strings.HasPrefix(path, assetsPath) {
		r.Header.Set("Accept-Encoding", "gzip, deflate, br")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if role != "" {
		r.AddCookie(s.session(role))
	}
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, r)
	return w
}

// session signs a role in.
func (s *site) session(role api.Role) *http.Cookie {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"token": secretOf(role)})
	if err != nil {
		s.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, "/session", strings.NewReader(string(body)))
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, r)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusNoContent || len(cookies) != 1 {
		s.t.Fatalf("signing the %s in: %d %s", role, w.Code, w.Body)
	}
	return cookies[0]
}

// html returns a page as a role sees it.
func (s *site) html(p *page, role api.Role) string {
	s.t.Helper()
	w := s.ask(http.MethodGet, address(p), role)
	if w.Code != http.StatusOK {
		s.t.Fatalf("%s for %q: %d %s", p.Name, role, w.Code, w.Body)
	}
	return w.Body.String()
}

// address is where a page is; that of a thing is the page of one with a name that needs escapes.
func address(p *page) string {
	if len(p.Path) > 1 && strings.HasSuffix(p.Path, "/") {
		return p.Path + url.PathEscape("a/b %<&")
	}
	return p.Path
}

// element is one of a page, with what it is in.
type element struct {
	name  string
	attr  map[string]string
	above []string // the names of those around it, the outermost first
	text  string   // directly in it
}

// elements reads a page, which must close what it opens.
func elements(t testing.TB, html string) []*element {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(html))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	var all, around []*element
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			e := &element{name: x.Name.Local, attr: map[string]string{}}
			for _, a := range x.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			for _, o := range around {
				e.above = append(e.above, o.name)
			}
			all, around = append(all, e), append(around, e)
		case xml.EndElement:
			if len(around) == 0 || around[len(around)-1].name != x.Name.Local {
				t.Fatalf("</%s> closes something else", x.Name.Local)
			}
			around = around[:len(around)-1]
		case xml.CharData:
			if len(around) > 0 {
				around[len(around)-1].text += string(x)
			}
		}
	}
	if len(around) > 0 {
		t.Fatalf("<%s> is not closed", around[len(around)-1].name)
	}
	return all
}

// with returns the elements of a name that have an attribute.
func with(all []*element, name, attr string) []*element {
	return slices.DeleteFunc(slices.Clone(all), func(e *element) bool {
		_, has := e.attr[attr]
		return e.name != name || !has
	})
}
