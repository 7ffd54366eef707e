package onbeat_test

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/page"
)

// loudFolders are those whose code runs within serve.
var loudFolders = []string{".", "cmd/onbeat", "api", "archive/sqlarchive", "archiver", "consumer", "instance", "lock", "notify", "outbox", "producer", "queue", "store"}

// TestOperations_listsEachLogLine holds the page to what serve logs at warn and error.
func TestOperations_listsEachLogLine(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for _, dir := range loudFolders {
		for _, file := range parseFolder(t, dir, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }) {
			for _, decl := range file.Decls {
				logged(t, decl, want)
			}
		}
	}
	listed := map[string]string{}
	for _, heading := range []string{"### At start and reload", "### Redis", "### The archive", "### Leading", "### Running tasks", "### Stopping"} {
		for _, row := range page.Table(t, "docs/operations.md", heading) {
			listed[row.Names[0]] = row.Cells[1]
			if len(row.Names) != 1 || len(row.Cells) != 3 || strings.TrimSpace(row.Cells[2]) == "" {
				t.Errorf("%s: not one line, its level, and what to do: %q", heading, row.Cells)
			}
		}
	}
	page.Compare(t, "the table of log lines", keys(listed), keys(want))
	for line, level := range want {
		if is, ok := listed[line]; ok && is != level {
			t.Errorf("%q is logged at %s, and listed at %s", line, level, is)
		}
	}
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
