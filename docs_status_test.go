package onbeat_test

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/admin"
)

// kindsOfStatus are the words that a line of a status begins with: those that the code gives to a Trouble. It fails the test for one that
// has no place in the order of a status.
func kindsOfStatus(t *testing.T) map[string]string {
	t.Helper()
	named, healths, ranked := map[string]string{}, map[string]string{}, map[string]string{}
	var kinds, order []ast.Expr
	for _, dir := range []string{"admin", "api"} { // the API knows of its tokens
		for _, file := range parseFolder(t, dir, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }) {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec:
					for i, v := range n.Values {
						if text, ok := literal(v, nil); ok {
							named[n.Names[i].Name] = text
							if typ, ok := n.Type.(*ast.Ident); ok && typ.Name == "Health" {
								healths[text] = ""
							}
						}
						if list, ok := v.(*ast.CompositeLit); ok && n.Names[i].Name == "worst" {
							order = list.Elts
						}
					}
				case *ast.CompositeLit:
					if nameOf(n.Type) == "Trouble" {
						kinds = append(kinds, fieldOf(n, "Kind")...)
					}
				case *ast.AssignStmt:
					for i, left := range n.Lhs {
						if f, ok := left.(*ast.SelectorExpr); ok && f.Sel.Name == "Kind" {
							kinds = append(kinds, n.Rhs[i])
						}
					}
				}
				return true
			})
		}
	}
	for _, e := range order {
		ranked[named[nameOf(e)]] = ""
	}
	words := map[string]string{}
	for _, e := range kinds {
		switch text, ok := literal(e, nil); {
		case ok:
			words[text] = ""
		case nameOf(e) == "Health": // that of a schedule: its line is left out if the schedule is well
			for h := range healths {
				if admin.Health(h).Bad() {
					words[h] = ""
				}
			}
		case named[nameOf(e)] != "":
			words[named[nameOf(e)]] = ""
		default:
			t.Errorf("a line of a status whose kind is not a constant: %s", nameOf(e))
		}
	}
	for word := range words {
		if _, ok := ranked[word]; !ok {
			t.Errorf("%q has no place among the worst of admin", word)
		}
	}
	return words
}

// sourcesOfStatus are the sources that a status could not ask, with … for what they name.
func sourcesOfStatus(t *testing.T) map[string]string {
	t.Helper()
	sources := map[string]string{}
	var all []ast.Expr
	for _, file := range parseFolder(t, "admin", func(name string) bool { return !strings.HasSuffix(name, "_test.go") }) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "ask" && len(n.Args) == 2 {
					all = append(all, n.Args[0])
				}
			case *ast.CompositeLit:
				if list, ok := n.Type.(*ast.ArrayType); ok && nameOf(list.Elt) == "Unasked" {
					for _, e := range n.Elts {
						all = append(all, e.(*ast.CompositeLit).Elts[0])
					}
				} else if nameOf(n.Type) == "Unasked" && nameOf(n.Elts[0]) != "source" { // that is an argument of ask
					all = append(all, n.Elts[0])
				}
			}
			return true
		})
	}
	for _, e := range all {
		if text, ok := literal(e, nil); ok {
			sources[text] = ""
		} else if sum, ok := e.(*ast.BinaryExpr); ok {
			text, _ := literal(sum.X, nil)
			sources[text+"…"] = ""
		} else {
			t.Errorf("a source of a status whose name is not a constant: %s", nameOf(e))
		}
	}
	return sources
}

// nameOf is the last name of an expression, such as Kind of x.Kind, of string(x.Kind) and of *x.Kind.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return nameOf(e.X)
	case *ast.CallExpr:
		if nameOf(e.Fun) == "string" {
			return nameOf(e.Args[0])
		}
	}
	return ""
}

// fieldOf is the value of a field of a literal, if it has one.
func fieldOf(of *ast.CompositeLit, name string) []ast.Expr {
	for _, e := range of.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok && nameOf(pair.Key) == name {
			return []ast.Expr{pair.Value}
		}
	}
	return nil
}
