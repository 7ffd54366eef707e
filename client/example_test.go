package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/onbeat/onbeat/client"
)

func Example() {
	// In a program, this is the address of onbeat serve.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"waiting": 3, "overdue": 1}`)
	}))
	defer server.Close()

	a, err := client.New(server.URL, client.Options{})
	if err != nil {
		panic(err)
	}
	n, err := a.Activity.Counts(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(n.Waiting, "waiting, of which", n.Overdue, "overdue")
	// Output: 3 waiting, of which 1 overdue
}
