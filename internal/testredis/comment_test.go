package testredis

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// The compiler checks the example, and this test that the package comment shows the same code.
func TestPackageComment_showsTheExample(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(source), "func Example() {\n")
	body, _, whole := strings.Cut(rest, "\n}\n")
	if !found || !whole {
		t.Fatal("example_test.go has no func Example()")
	}
	file, err := parser.ParseFile(token.NewFileSet(), "testredis.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	indented := "\t" + strings.ReplaceAll(body, "\n", "\n\t") // code in a comment
	if shown := rawText(file.Doc); !strings.Contains(shown, indented+"\n\t}\n") {
		t.Errorf("the comment of package testredis does not show the body of Example:\n%s", indented)
	}
}

// rawText is a comment without its marks. CommentGroup.Text would change the indentation.
func rawText(doc *ast.CommentGroup) string {
	var b strings.Builder
	for _, c := range doc.List {
		b.WriteString(strings.TrimPrefix(c.Text, "//") + "\n")
	}
	return b.String()
}
