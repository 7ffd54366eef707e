package dashboard

import (
	"encoding/json"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/api"
)

// imported is from where a module imports, and cloned a template that it copies.
var (
	imported = regexp.MustCompile(`(?m)^import\b[^;'"]*['"]([^'"]+)['"]`)
	cloned   = regexp.MustCompile(`\bclone\('([^']+)'`)
	unread   = regexp.MustCompile(`\bclone\([^'")]|\bimport\(|(?m)^export (?:\{|\*|default)`) // what these tests do not follow
)

// modules are the sources of the script, by name.
func modules(t testing.TB) (names []string) {
	t.Helper()
	for _, pattern := range []string{"*.js", "*/*.js"} {
		found, err := fs.Glob(os.DirFS("assets"), pattern)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	return names
}

func source(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("assets", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// reached returns the modules of a page: its own, and those that it imports.
func reached(t testing.TB, p *page) []string {
	t.Helper()
	var names []string
	seen := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if seen[name] {
			return
		}
		seen[name], names = true, append(names, name)
		for _, m := range imported.FindAllStringSubmatch(source(t, name), -1) {
			add(path.Join(path.Dir(name), m[1]))
		}
	}
	add("pages/" + p.Name + ".js")
	return names
}

// loaded returns the assets that the HTML of a page names.
func (s *site) loaded(html string) (names []string) {
	s.t.Helper()
	for _, e := range elements(s.t, html) {
		for _, attr := range []string{"src", "href", "data-good", "data-bad"} {
			if name, ok := strings.CutPrefix(e.attr[attr], "/assets/"+s.assets.hash+"/"); ok {
				names = append(names, name)
			} else if strings.Contains(e.attr[attr], "assets") {
				s.t.Errorf("<%s %s=%q> is not an asset of this release", e.name, attr, e.attr[attr])
			}
		}
	}
	return names
}

// A module fails where a template is missing, and its maker does not look at a page that only a viewer sees.
func TestModules_findTheTemplatesThatTheyCopy(t *testing.T) {
	t.Parallel()
	s := open(t, everyRole()...)
	used := map[string]bool{}
	for i := range list {
		for _, role := range []api.Role{api.Viewer, api.Operator, api.Admin} {
			html := s.html(&list[i], role)
			there := map[string]bool{}
			for _, e := range with(elements(t, html), "template", "id") {
				there[e.attr["id"]] = true
			}
			for _, name := range reached(t, &list[i]) {
				for _, m := range cloned.FindAllStringSubmatch(source(t, name), -1) {
					if used["t-"+m[1]] = true; !there["t-"+m[1]] {
						t.Errorf("%s for the %s: %s copies the template %q, which is not there", list[i].Name, role, name, m[1])
					}
				}
			}
			for id := range there {
				if strings.HasPrefix(id, "t-") && !used[id] {
					used[id] = false // it should be
				}
			}
		}
	}
	for id, is := range used {
		if !is {
			t.Errorf("no module copies the template %s", id)
		}
	}
	for _, name := range modules(t) {
		if !slices.Contains([]string{"app.js", "dom.js", "pages/trends.js"}, name) && unread.MatchString(source(t, name)) {
			t.Errorf("%s copies, imports or exports in a way that this test does not follow", name)
		}
	}
}

// called is a call of the API in a module: its method, and its path with ${names} in it.
var called = regexp.MustCompile("\\b(get|all|post|put|remove)\\((?:place)?(?:`(/[^`]*)`|'(/[^']*)')")

// operation is one of the API's document.
type operation struct {
	ID   string   `json:"operationId"`
	Role api.Role `json:"x-onbeat-role"`
}

// operations are those of the API, by method and path, in which a name is {}.
func (s *site) operations() map[string]operation {
	s.t.Helper()
	var document struct {
		Paths map[string]map[string]operation
	}
	if err := json.Unmarshal(s.ask(http.MethodGet, "/openapi.json", "").Body.Bytes(), &document); err != nil {
		s.t.Fatal(err)
	}
	out := map[string]operation{}
	for path, item := range document.Paths {
		for method, op := range item {
			if op.ID == "" || !op.Role.May(api.Viewer) {
				s.t.Fatalf("%s %s: %+v", method, path, op)
			}
			out[strings.ToUpper(method)+" "+regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "{}")] = op
		}
	}
	return out
}

// operationOf returns the operation that a call in a module means.
func operationOf(call []string) string {
	method := map[string]string{"get": "GET", "all": "GET", "post": "POST", "put": "PUT", "remove": "DELETE"}[call[1]]
	path, _, _ := strings.Cut(call[2]+call[3], "?")
	return method + " /v1" + regexp.MustCompile(`\$\{[^}]*\}`).ReplaceAllString(path, "{}")
}

func TestModules_callOperationsThatThereAre(t *testing.T) {
	t.Parallel()
	s := open(t)
	operations := s.operations()
	calls := map[string]bool{}
	for _, name := range modules(t) {
		for _, call := range called.FindAllStringSubmatch(source(t, name), -1) {
			op := operationOf(call)
			if calls[op] = true; operations[op].ID == "" {
				t.Errorf("%s: %s: there is no %s", name, call[0], op)
			}
		}
	}
	if len(calls) < 20 {
		t.Errorf("the calls of the modules are %q: did their way of calling change?", slices.Sorted(maps.Keys(calls)))
	}
}

// secure is what browsers offer over https and on this machine alone.
var secure = regexp.MustCompile(`crypto\.(?:randomUUID|subtle)|navigator\.(?:clipboard|serviceWorker|storage)|Notification\(|showOpenFilePicker|showSaveFilePicker|caches\.`)

func TestModules_workOverPlainHTTP(t *testing.T) {
	t.Parallel()
	for _, name := range modules(t) {
		text := regexp.MustCompile(`(?m)//.*$`).ReplaceAllString(source(t, name), "")
		if secure.MatchString(text) {
			t.Errorf("%s uses %s", name, secure.FindString(text))
		}
		if uses := strings.Count(text, "navigator.locks"); uses > 0 && !strings.Contains(text, "navigator.locks &&") {
			t.Errorf("%s uses navigator.locks without a look whether it is there", name)
		}
	}
}
