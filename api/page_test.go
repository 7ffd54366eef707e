package api

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/onbeat/onbeat/internal/page"
)

const apiPage = "../docs/api.md"

func TestPage_listsEachOperationWithItsRole(t *testing.T) {
	t.Parallel()
	roles := map[string]string{}
	var want []string
	serve(t, Config{}).operations(func(method, path string, op *huma.Operation) {
		name := method + " " + path
		roles[name], want = op.Extensions["x-onbeat-role"].(string), append(want, name)
	})
	rows := page.Table(t, apiPage, "## Operations")
	page.Compare(t, "the operations of docs/api.md", page.Listed(t, rows), want)
	for _, row := range rows {
		if len(row.Cells) != 3 || roles[row.Names[0]] != row.Cells[1] {
			t.Errorf("%q: it needs the role %s", row.Cells, roles[row.Names[0]])
		}
	}
	page.Compare(t, "## Roles", page.Listed(t, page.Table(t, apiPage, "## Roles")), []string{string(Viewer), string(Operator), string(Admin)})
}

// problemInCode is a status and the kind of problem that goes with it.
var problemInCode = regexp.MustCompile(`http\.Status(\w+), "([a-z-]+)"`)

func TestPage_listsEachProblemWithItsStatus(t *testing.T) {
	t.Parallel()
	status := map[string]string{"method-not-allowed": "405"} // the words of its status; see problem
	names := map[string]string{}
	for code := 400; code < 600; code++ {
		names[strings.NewReplacer(" ", "", "-", "").Replace(http.StatusText(code))] = strconv.Itoa(code)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range problemInCode.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasSuffix(file, "_test.go") {
				status[m[2]] = names[m[1]]
			}
		}
	}
	var want []string
	for kind := range status {
		want = append(want, kind)
	}
	rows := page.Table(t, apiPage, "## Errors")
	page.Compare(t, "the problems of docs/api.md", page.Listed(t, rows), want)
	for _, row := range rows {
		for _, kind := range row.Names {
			if status[kind] != row.Cells[1] {
				t.Errorf("%s has the status %s, and the page says %s", kind, status[kind], row.Cells[1])
			}
		}
	}
}
