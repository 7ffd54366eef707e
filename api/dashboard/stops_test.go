package dashboard_test

import (
	"os"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/consumer"
)

func TestWords_knowTheErrorsOfRunsThatWereStopped(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("assets/tasks/words.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, stop := range []error{consumer.ErrCancelled, consumer.ErrReplaced} {
		if !strings.Contains(string(text), "'"+stop.Error()+"'") {
			t.Errorf("assets/tasks/words.js does not have %q", stop)
		}
	}
}
