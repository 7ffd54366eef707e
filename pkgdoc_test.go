package onbeat_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// libraryPackages are those that other programs import, each of which shows how.
var libraryPackages = []string{
	"task", "schedule", "instance", "producer", "consumer", "handlers", "handlers/notify", "lock", "api", "api/dashboard", "client", "telemetry", "archive",
	"archive/sqlarchive", "outbox", "postgres", "onbeattest",
}

func TestPackages_haveADocComment(t *testing.T) {
	t.Parallel()
	for _, dir := range goFolders(t) {
		files := parseFolder(t, dir, func(name string) bool { return !strings.HasSuffix(name, "_test.go") })
		if len(files) == 0 {
			continue // nothing but tests
		}
		if !slices.ContainsFunc(files, hasPackageDoc) {
			t.Errorf("%s: no file has a package comment; say what package %s is for", dir, files[0].Name.Name)
		}
	}
}

func TestLibraryPackages_haveARunnableExample(t *testing.T) {
	t.Parallel()
	for _, dir := range libraryPackages {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		files := parseFolder(t, dir, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
		runnable := slices.ContainsFunc(doc.Examples(files...), func(e *doc.Example) bool {
			return e.Output != "" || e.EmptyOutput
		})
		if !runnable {
			t.Errorf("%s: no Example function ends in an // Output: comment, so none is run", dir)
		}
	}
}

// hasPackageDoc tells whether a file says what its package is for. A comment that
// only tells tools something, or the start of a generated file, does not.
func hasPackageDoc(f *ast.File) bool {
	if f.Doc == nil || ast.IsGenerated(f) {
		return false
	}
	text := strings.TrimSpace(f.Doc.Text())
	if f.Name.Name == "main" {
		return text != ""
	}
	return strings.HasPrefix(text, "Package "+f.Name.Name+" ")
}

// goFolders are the folders of this module that hold Go files: not those of a
// module inside it, and not what the go command passes over.
func goFolders(t *testing.T) []string {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if !entry.IsDir() {
			if dir := filepath.Dir(path); strings.HasSuffix(name, ".go") && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
			return nil
		}
		if path == "." {
			return nil
		}
		if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || name == "vendor" {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) < len(libraryPackages)/2 {
		t.Fatalf("found Go files in %v only; is this the root of the module?", dirs)
	}
	return dirs
}

// parseFolder reads the Go files of a folder whose names are wanted.
func parseFolder(t *testing.T, dir string, want func(name string) bool) []*ast.File {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") || !want(name) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		files = append(files, file)
	}
	return files
}
