package onbeat_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/onbeat/onbeat"

// A user of a public package can write the name of each type that the package hands out, and read its documentation.
func TestPublic_namesNoInternalType(t *testing.T) {
	t.Parallel()
	for _, pkg := range publicPackages(t) {
		for _, name := range pkg.Scope().Names() {
			if o := pkg.Scope().Lookup(name); o.Exported() {
				s := &surface{home: pkg, seen: map[types.Type]bool{}}
				s.object(o)
				for _, leak := range slices.Compact(s.leaks) {
					t.Errorf("%s.%s%s", strings.TrimPrefix(pkg.Path(), module+"/"), name, leak)
				}
			}
		}
	}
}

// The documentation of a public package sends no reader to a package that the reader cannot import.
func TestPublic_documentationNamesNoInternalPackage(t *testing.T) {
	t.Parallel()
	var names []string
	folders := goFolders(t)
	for _, dir := range folders {
		if strings.HasPrefix(dir, "internal/") {
			names = append(names, filepath.Base(dir))
		}
	}
	inside := regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\.[A-Z]\w*`)
	for _, dir := range folders {
		if strings.HasPrefix(dir, "cmd/") || slices.Contains(strings.Split(dir, "/"), "internal") {
			continue
		}
		for _, file := range parseFolder(t, dir, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }) {
			for _, text := range documentation(file) {
				if name := inside.FindString(text); name != "" {
					t.Errorf("%s: %s in %q", dir, name, text)
				}
			}
		}
	}
}

// documentation returns the comments of a file that a user of its package reads.
func documentation(file *ast.File) (list []string) {
	if file.Doc != nil {
		list = append(list, file.Doc.Text())
	}
	for _, d := range file.Decls {
		from, to := d.Pos(), d.End()
		switch d := d.(type) {
		case *ast.FuncDecl:
			if !d.Name.IsExported() || d.Doc == nil || d.Recv != nil && !exportedReceiver(d.Recv.List[0].Type) {
				continue
			}
			from, to = d.Doc.Pos(), d.Pos()
		case *ast.GenDecl:
			if !slices.ContainsFunc(d.Specs, exportedSpec) {
				continue
			}
			if d.Doc != nil {
				from = d.Doc.Pos()
			}
		}
		for _, c := range file.Comments {
			if from <= c.Pos() && c.End() <= to {
				list = append(list, c.Text())
			}
		}
	}
	return list
}

func exportedReceiver(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.StarExpr:
		return exportedReceiver(x.X)
	case *ast.IndexExpr:
		return exportedReceiver(x.X)
	case *ast.Ident:
		return x.IsExported()
	}
	return true
}

func exportedSpec(s ast.Spec) bool {
	switch s := s.(type) {
	case *ast.TypeSpec:
		return s.Name.IsExported()
	case *ast.ValueSpec:
		return slices.ContainsFunc(s.Names, (*ast.Ident).IsExported)
	}
	return false
}

// raced is set in builds with the race detector.
var raced bool

// publicPackages are the packages that another module can import, as the compiler exported them. They are built as the tests were,
// so that nothing is compiled for this test alone.
func publicPackages(t *testing.T) (list []*types.Package) {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	if raced {
		args = append(args, "-race")
	}
	for _, dir := range goFolders(t) {
		if dir != "cmd" && !strings.HasPrefix(dir, "cmd/") && !slices.Contains(strings.Split(dir, "/"), "internal") {
			args = append(args, "./"+dir)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for line := range bytes.Lines(out) {
		path, file, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		files[path] = file
	}
	imports := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	for path := range files {
		name, own := ownPackage(`"` + path + `"`)
		if !own || isInternal(path) || strings.HasPrefix(name, "cmd/") {
			continue
		}
		pkg, err := imports.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pkg)
	}
	slices.SortFunc(list, func(a, b *types.Package) int { return strings.Compare(a.Path(), b.Path()) })
	return list
}

func isInternal(path string) bool {
	return strings.HasPrefix(path, module) && slices.Contains(strings.Split(path, "/"), "internal")
}

// surface is what a user of a package sees of one name.
type surface struct {
	home  *types.Package
	seen  map[types.Type]bool
	leaks []string
}

func (s *surface) object(o types.Object) {
	name, ok := o.(*types.TypeName)
	if !ok {
		s.walk("", o.Type())
		return
	}
	if name.IsAlias() {
		s.walk("", types.Unalias(o.Type()))
		return
	}
	s.named("", o.Type().(*types.Named))
}

// named walks the exported fields and methods of a type of this package, also those that embedding gives it.
func (s *surface) named(at string, n *types.Named) {
	if s.seen[n] {
		return
	}
	s.seen[n] = true
	s.walk(at, n.Underlying())
	methods := types.NewMethodSet(types.NewPointer(n))
	for i := range methods.Len() {
		if m := methods.At(i).Obj(); m.Exported() {
			s.walk(at+"."+m.Name(), m.Type())
		}
	}
}

func (s *surface) walk(at string, t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		if pkg := t.Obj().Pkg(); pkg != nil && isInternal(pkg.Path()) {
			s.leak(at, t)
			return
		}
		s.walk(at, types.Unalias(t))
	case *types.Named:
		for arg := range t.TypeArgs().Types() {
			s.walk(at, arg)
		}
		switch pkg := t.Obj().Pkg(); {
		case pkg == nil:
		case isInternal(pkg.Path()):
			s.leak(at, t)
		case pkg == s.home && !t.Obj().Exported():
			s.named(at, t)
		}
	case *types.Pointer:
		s.walk(at, t.Elem())
	case *types.Slice:
		s.walk(at, t.Elem())
	case *types.Array:
		s.walk(at, t.Elem())
	case *types.Chan:
		s.walk(at, t.Elem())
	case *types.Map:
		s.walk(at, t.Key())
		s.walk(at, t.Elem())
	case *types.Signature:
		for list := range slices.Values([]*types.Tuple{t.Params(), t.Results()}) {
			for v := range list.Variables() {
				s.walk(at, v.Type())
			}
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() || f.Embedded() {
				s.walk(at+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for i := range t.NumEmbeddeds() {
			s.walk(at, t.EmbeddedType(i))
		}
		for m := range t.ExplicitMethods() {
			if m.Exported() {
				s.walk(at+"."+m.Name(), m.Type())
			}
		}
	}
}

func (s *surface) leak(at string, t types.Type) {
	s.leaks = append(s.leaks, fmt.Sprintf("%s mentions %s", at, strings.ReplaceAll(t.String(), module+"/", "")))
}
