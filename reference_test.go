package onbeat_test

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/page"
)

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

// TestReference_listsEachEvent holds the page to what the scripts and the Go code write.
func TestReference_listsEachEvent(t *testing.T) {
	t.Parallel()
	all := events{}
	change := luaEvents(t, all)
	kinds := goEvents(t, all)
	for _, kind := range kinds { // the kind is an argument of change.lua
		all.add(kind, change.fields, change.optional)
	}
	rows := page.Table(t, "docs/reference.md", "## Events")
	var want []string
	for kind := range all {
		want = append(want, kind)
	}
	page.Compare(t, "## Events", page.Listed(t, rows), want)
	for _, row := range rows {
		for _, kind := range row.Names {
			if e := all[kind]; e != nil {
				shown := page.Names(row.Cells[1])
				shown = slices.DeleteFunc(shown, func(f string) bool { return slices.Contains(e.optional, f) && !slices.Contains(e.fields, f) })
				page.Compare(t, "event "+kind, shown, e.fields)
			}
		}
	}
}

var (
	recorded = regexp.MustCompile(`\brecord\(`)
	chosen   = regexp.MustCompile(`\b(?:and|or) "([^"]+)"`)
	quoted   = regexp.MustCompile(`"([^"]+)"`)
)

// luaEvents adds what the scripts record. What it returns are the fields of those whose kind is not in the script.
func luaEvents(t *testing.T, all events) (unnamed event) {
	t.Helper()
	files, err := filepath.Glob("*/scripts/*.lua")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d scripts: %v", len(files), err)
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
