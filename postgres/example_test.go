package postgres_test

import (
	"fmt"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/archive/sqlarchive"
	_ "github.com/onbeat/onbeat/postgres" // a program without it refuses this URL
)

func Example() {
	c := onbeat.Config{Namespace: "shop", Archive: sqlarchive.Config{URL: "postgres://shop:secret@db:5432/shop"}}
	fmt.Println(c.Validate(), c.Archive)
	// Output:
	// <nil> postgres://shop:…@db:5432/shop
}
