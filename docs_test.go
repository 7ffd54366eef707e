package onbeat_test

import (
	"go/ast"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/api"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/page"
)

// The pages and the code have the same names. Beside some of them a page says one more thing that the code knows.
func TestDocs_listTheNamesOfTheCode(t *testing.T) {
	t.Parallel()
	events := eventsOf(t)
	kinds, words := map[string]string{}, map[string]string{}
	for kind := range events {
		kinds[kind] = ""
	}
	for _, word := range history.Words() {
		words[string(word)] = ""
	}
	verdicts := map[string]string{}
	for v := audit.Verdict(0); !strings.HasPrefix(v.String(), "verdict("); v++ {
		verdicts[v.String()] = ""
	}
	problems := found(t, "api/*.go", `http\.Status(\w+), "([a-z-]+)"`, func(m []string) (string, string) { return m[2], statuses()[m[1]] })
	problems["method-not-allowed"] = "405" // it has the words of its status
	for _, c := range []struct {
		page, headings string
		names          map[string]string // with what the second cell has to say, if that is no prose
	}{
		{"docs/history.md", "## Events", kinds},
		{"docs/history.md", "## History", words},
		{"docs/history.md", "## Audit", verdicts},
		{"docs/commands.md", "## Exit codes", found(t, "cmd/onbeat/*.go", `(?m)^\s+exit\w+ += (\d+)`, func(m []string) (string, string) { return m[1], "" })},
		{"docs/api.md", "## Roles", map[string]string{string(api.Viewer): "", string(api.Operator): "", string(api.Admin): ""}},
		{"docs/api.md", "## Errors", problems},
		{"docs/runbook.md", "## Lines of status", kindsOfStatus(t)},
		{"docs/runbook.md", "### Sources that did not answer", sourcesOfStatus(t)},
		{"docs/runbook.md", "### At start and reload, ### Redis, ### The archive, ### Leading, ### Running tasks, ### Stopping", logLines(t)},
	} {
		var listed []page.Row
		for heading := range strings.SplitSeq(c.headings, ", ") {
			listed = append(listed, page.Table(t, c.page, heading)...)
		}
		page.Compare(t, c.page+", "+c.headings, page.Listed(t, listed), keys(c.names))
		for _, row := range listed {
			for _, name := range row.Names {
				if want := c.names[name]; want != "" && row.Cells[1] != want {
					t.Errorf("%s, %q: %s, and the code says %s", c.page, name, row.Cells[1], want)
				}
			}
		}
	}
	for _, row := range page.Table(t, "docs/history.md", "## Events") {
		for _, kind := range row.Names {
			if e := events[kind]; e != nil {
				shown := slices.DeleteFunc(page.Names(row.Cells[1]), func(f string) bool { return slices.Contains(e.optional, f) && !slices.Contains(e.fields, f) })
				page.Compare(t, "event "+kind, shown, e.fields)
			}
		}
	}
	const sentences = "api/dashboard/assets/events/words.js" // has a sentence for each event
	page.Compare(t, sentences, keys(found(t, sentences, `(?m)^  '?([a-z ]+)'?: (?:\(f\) =>|changed\()`, func(m []string) (string, string) { return m[1], "" })), keys(kinds))
}

// found returns the names that a pattern finds in files, each with what stands beside it.
func found(t *testing.T, files, pattern string, read func(match []string) (name, beside string)) map[string]string {
	t.Helper()
	list, err := filepath.Glob(files)
	if err != nil || len(list) == 0 {
		t.Fatalf("%s: %v", files, err)
	}
	names := map[string]string{}
	for _, file := range list {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			if !strings.HasSuffix(file, "_test.go") {
				name, beside := read(m)
				names[name] = beside
			}
		}
	}
	return names
}

// statuses are the numbers of HTTP by the names that package http gives them.
func statuses() map[string]string {
	list := map[string]string{}
	for code := 400; code < 600; code++ {
		list[strings.NewReplacer(" ", "", "-", "").Replace(http.StatusText(code))] = strconv.Itoa(code)
	}
	return list
}

// A page that names a source file names one that is there: files move.
func TestDocs_nameFilesThatExist(t *testing.T) {
	t.Parallel()
	for _, pages := range []string{"docs/*.md", "[A-Z]*.md"} {
		names := found(t, pages, "`([a-z_]+/[a-z_/]*\\.(?:go|lua))`", func(m []string) (string, string) { return m[1], "" })
		if len(names) == 0 && pages == "docs/*.md" {
			t.Error("no page names a file: did the pattern change?")
		}
		for name := range names {
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s name %s: %v", pages, name, err)
			}
		}
	}
}

// event is what the sources say of one kind of event.
type event struct {
	fields   []string // those that it has wherever it is recorded, or at some place
	optional []string // those that a script adds under a condition
}

type events map[string]*event

func (e events) add(kind string, fields, optional []string) {
	if e[kind] == nil {
		e[kind] = &event{}
	}
	e[kind].fields, e[kind].optional = append(e[kind].fields, fields...), append(e[kind].optional, optional...)
}

// eventsOf is what the scripts and the Go code record.
func eventsOf(t *testing.T) events {
	t.Helper()
	all := events{}
	change := luaEvents(t, all)
	for _, kind := range goEvents(t, all) { // the kind is an argument of change.lua
		all.add(kind, change.fields, change.optional)
	}
	return all
}

var (
	recorded = regexp.MustCompile(`\brecord\(`)
	chosen   = regexp.MustCompile(`\b(?:and|or) "([^"]+)"`)
	quoted   = regexp.MustCompile(`"([^"]+)"`)
)

// luaEvents adds the events that the scripts record. It returns the fields of the events whose kind is not in the script.
func luaEvents(t *testing.T, all events) (unnamed event) {
	t.Helper()
	files, _ := filepath.Glob("*/scripts/*.lua")
	more, _ := filepath.Glob("internal/*/scripts/*.lua")
	if files = append(files, more...); len(files) < 20 {
		t.Fatalf("found %d scripts only", len(files))
	}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range recorded.FindAllStringIndex(string(source), -1) {
			args := luaArgs(string(source[at[1]:]))
			if len(args) < 4 || args[2] != `"event"` {
				continue // of the history, or the function itself
			}
			var fields, optional []string
			for i, arg := range args[4:] {
				switch {
				case strings.HasPrefix(arg, "unpack("):
					for _, m := range quoted.FindAllStringSubmatch(arg, -1) {
						optional = append(optional, m[1])
					}
				case i%2 == 0:
					fields = append(fields, strings.Trim(arg, `"`))
				}
			}
			switch kind, err := strconv.Unquote(args[3]); {
			case err == nil:
				all.add(kind, fields, optional)
			case chosen.MatchString(args[3]):
				for _, m := range chosen.FindAllStringSubmatch(args[3], -1) {
					all.add(m[1], fields, optional)
				}
			case filepath.Base(name) == "change.lua":
				unnamed = event{fields, optional}
			default:
				t.Errorf("%s: an event whose kind is %s", name, args[3])
			}
		}
	}
	return unnamed
}

// luaArgs are the arguments of a call, from behind its opening parenthesis on.
func luaArgs(source string) (args []string) {
	depth, from, within := 0, 0, false
	for i, r := range source {
		switch {
		case r == '"':
			within = !within
		case within:
		case strings.ContainsRune("([{", r):
			depth++
		case depth == 0 && (r == ',' || r == ')'):
			args = append(args, strings.TrimSpace(source[from:i]))
			from = i + 1
			if r == ')' {
				return args
			}
		case strings.ContainsRune(")]}", r):
			depth--
		}
	}
	return nil
}

// goEvents adds what Go code tells, and returns the kinds that it has change.lua record.
func goEvents(t *testing.T, all events) (changes []string) {
	t.Helper()
	for _, dir := range goFolders(t) {
		files := parseFolder(t, dir, func(name string) bool { return !strings.HasSuffix(name, "_test.go") })
		constants := map[string]string{}
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if c, ok := n.(*ast.ValueSpec); ok && len(c.Values) == len(c.Names) {
					for i, v := range c.Values {
						if s, ok := literal(v, nil); ok {
							constants[c.Names[i].Name] = s
						}
					}
				}
				return true
			})
		}
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Tell" {
						tells(t, all, dir, n.Args, constants)
					}
				case *ast.KeyValueExpr:
					if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Event" {
						changes = appendKind(t, changes, dir, n.Value)
					}
				case *ast.AssignStmt:
					for i, left := range n.Lhs {
						if f, ok := left.(*ast.SelectorExpr); ok && f.Sel.Name == "Event" && len(n.Rhs) == len(n.Lhs) {
							changes = appendKind(t, changes, dir, n.Rhs[i])
						}
					}
				}
				return true
			})
		}
	}
	return changes
}

// tells adds the event of a call of Tell.
func tells(t *testing.T, all events, dir string, args []ast.Expr, constants map[string]string) {
	t.Helper()
	kind, ok := literal(args[1], constants)
	if !ok {
		t.Errorf("%s: an event whose kind is not a constant", dir)
		return
	}
	var fields []string
	for i := 2; i < len(args); i += 2 {
		name, ok := literal(args[i], constants)
		if !ok {
			t.Errorf("%s: event %s: a field whose name is not a constant", dir, kind)
		}
		fields = append(fields, name)
	}
	all.add(kind, fields, nil)
}

// appendKind adds the event of a queue.Change. One that is copied from another change is known from there.
func appendKind(t *testing.T, kinds []string, dir string, value ast.Expr) []string {
	t.Helper()
	if kind, ok := literal(value, nil); ok {
		return append(kinds, kind)
	}
	if _, copied := value.(*ast.SelectorExpr); !copied {
		t.Errorf("%s: the event of a change is not a constant", dir)
	}
	return kinds
}

func literal(e ast.Expr, constants map[string]string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			s, err := strconv.Unquote(e.Value)
			return s, err == nil
		}
	case *ast.Ident:
		s, ok := constants[e.Name]
		return s, ok
	}
	return "", false
}

// loudFolders are those whose code runs within serve.
var loudFolders = []string{"admin", ".", "cmd/onbeat", "api", "archive/sqlarchive", "internal/archiver", "consumer", "instance", "lock", "handlers/notify", "outbox", "producer", "internal/queue", "internal/store"}

// logLines are the lines that serve logs at warn and error, with their levels.
func logLines(t *testing.T) map[string]string {
	t.Helper()
	lines := map[string]string{}
	for _, dir := range loudFolders {
		for _, file := range parseFolder(t, dir, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }) {
			for _, decl := range file.Decls {
				logged(t, decl, lines)
			}
		}
	}
	return lines
}

func keys(m map[string]string) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

var verb = regexp.MustCompile(`%0?\d*[a-z]`)

// logged adds the lines that a declaration logs at warn or error, with their levels.
func logged(t *testing.T, decl ast.Decl, lines map[string]string) {
	t.Helper()
	held := map[string]string{} // variables that hold an event of the log
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, right := range n.Rhs {
				if name, ok := n.Lhs[i].(*ast.Ident); ok && levelOf(right, held) != "" {
					held[name.Name] = levelOf(right, held)
				}
			}
		case *ast.CallExpr:
			// serve logs cautions at warn; warn makes them, of a name, a text and a hint.
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "warn" && len(n.Args) == 3 {
				lines[cautionText(t, n.Args[1])] = "warn"
			}
			f, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || f.Sel.Name != "Msg" {
				return true
			}
			level := levelOf(f.X, held)
			if level == "" {
				return true
			}
			if line, ok := literal(n.Args[0], nil); ok {
				lines[line] = level
			} else if arg, ok := n.Args[0].(*ast.SelectorExpr); !ok || arg.Sel.Name != "Detail" { // that of a caution
				t.Error("a line of the log is not a constant")
			}
		}
		return true
	})
}

// cautionText is the text of a caution, with … for what it fills in.
func cautionText(t *testing.T, e ast.Expr) string {
	t.Helper()
	if call, ok := e.(*ast.CallExpr); ok {
		e = call.Args[0]
	}
	text, ok := literal(e, nil)
	if !ok {
		t.Error("the text of a caution is not a constant")
	}
	return verb.ReplaceAllString(text, "…")
}

// levelOf is the level of a chain of calls such as log.Warn().Err(err), or "" if it is not loud.
func levelOf(e ast.Expr, held map[string]string) string {
	for {
		switch x := e.(type) {
		case *ast.CallExpr:
			e = x.Fun
		case *ast.SelectorExpr:
			if x.Sel.Name == "Warn" || x.Sel.Name == "Error" {
				return strings.ToLower(x.Sel.Name)
			}
			e = x.X
		case *ast.Ident:
			return held[x.Name]
		default:
			return ""
		}
	}
}
