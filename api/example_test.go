package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/api"
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
	handler, err := api.New(d.Admin(), api.Config{Namespace: "shop"})
	if err != nil {
		panic(err)
	}
	defer handler.Close()
	server := httptest.NewServer(handler)
	defer server.Close()

	reply, err := http.Post(server.URL+"/v1/tasks", "application/json", strings.NewReader(`{"type":"invoice.send","id":"inv-42","in":"1h"}`))
	if err != nil {
		panic(err)
	}
	defer reply.Body.Close()
	body, _ := io.ReadAll(reply.Body)
	fmt.Print(reply.StatusCode, " ", string(body))
	// Output: 201 {"id":"inv-42","added":true}
}
