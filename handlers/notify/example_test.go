package notify_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"text/template"
	"time"

	"github.com/onbeat/onbeat/handlers/notify"
)

// A receiver verifies what it is sent. Here the message is one to try the target out; those of a dispatcher come by
// onbeat.Config.Notify.
func Example() {
	key := []byte("a key of sixteen bytes or more")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if err := notify.Verify(key, r.Header, body, time.Now()); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		fmt.Printf("%s\n", body)
	}))
	defer server.Close()

	body := template.Must(template.New("").Funcs(notify.Funcs()).Parse(`{"text": {{json .Title}}, "lines": {{json .Lines}}}`))
	target := notify.Target{
		Name: "oncall", URL: server.URL, Key: key,
		Kind: notify.Template, Template: body,
	}
	err := notify.Send(context.Background(), target, notify.Sample("shop", notify.Dead, time.Unix(1_700_000_000, 0)))
	fmt.Println(err)
	// Output:
	// {"text": "shop: 1,000 tasks are dead", "lines": ["example: an example: dial tcp: \"refused\"","and 997 more"]}
	// <nil>
}
