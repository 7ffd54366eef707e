package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/api"
	"github.com/onbeat/onbeat/api/dashboard"
	"github.com/onbeat/onbeat/internal/embedded"
)

func Example() {
	ctx := context.Background()
	redis, err := embedded.Start(ctx, embedded.Options{InProcess: true})
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	rdb, err := onbeat.Dial(redis.URL())
	if err != nil {
		panic(err)
	}
	defer rdb.Close()
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: "shop"})
	if err != nil {
		panic(err)
	}
	pages, err := dashboard.New(dashboard.Config{Namespace: "shop"})
	if err != nil {
		panic(err)
	}
	handler, err := api.New(d.Admin(), api.Config{Namespace: "shop", Dashboard: pages}) // the pages ask this API
	if err != nil {
		panic(err)
	}
	defer handler.Close()
	server := httptest.NewServer(handler)
	defer server.Close()

	reply, err := http.Get(server.URL + "/beat")
	if err != nil {
		panic(err)
	}
	defer reply.Body.Close()
	body, _ := io.ReadAll(reply.Body)
	fmt.Println(reply.StatusCode, regexp.MustCompile("<title>.*</title>").FindString(string(body)))
	// Output: 200 <title>Beat · shop · onbeat</title>
}
