package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
)

// The status warns of a token whose secret cannot be read, and shows no path of this machine.
func TestStatus_warnsOfATokenThatCannotBeRead(t *testing.T) {
	t.Parallel()
	since := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	tokens := []Token{
		{Name: "v", Role: Viewer, Secret: "v-0123456789abcdef"}, {Name: "ann", Role: Admin, Trouble: "open /run/secrets/ann: permission denied", Since: since},
	}
	s := serve(t, Config{Tokens: func() []Token { return tokens }})
	code, _, text := s.call("GET", "/v1/status", "", "Authorization", "Bearer v-0123456789abcdef")
	var got admin.Status
	if err := json.Unmarshal([]byte(text), &got); code != http.StatusOK || err != nil {
		t.Fatalf("%d %s, %v", code, text, err)
	}
	for _, x := range got.Trouble {
		if x.Kind == admin.NoToken && x.Name == "ann" && x.Warning && x.Since.Equal(since) && !strings.Contains(text, "/run/") {
			return
		}
	}
	t.Errorf("%s", text)
}
