package audit

import (
	"testing"

	"github.com/onbeat/onbeat/internal/page"
)

func TestReference_listsEachVerdict(t *testing.T) {
	t.Parallel()
	page.Compare(t, "## Audit", page.Listed(t, page.Table(t, "../docs/reference.md", "## Audit")), verdictNames[:])
}
