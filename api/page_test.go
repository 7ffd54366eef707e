package api

import (
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
}
