package dashboard_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/onbeat/onbeat/internal/page"
)

// sentence is the beginning of a line of assets/events/words.js that says what an event means.
var sentence = regexp.MustCompile(`(?m)^  '?([a-z ]+)'?: (?:\(f\) =>|changed\()`)

func TestWords_haveASentenceForEachEvent(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("assets/events/words.js")
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, m := range sentence.FindAllStringSubmatch(string(text), -1) {
		have = append(have, m[1])
	}
	page.Compare(t, "assets/events/words.js", have, page.Listed(t, page.Table(t, "../docs/reference.md", "## Events")))
}
