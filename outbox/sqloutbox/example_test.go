package sqloutbox_test

import (
	"fmt"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/outbox/sqloutbox"
	_ "github.com/onbeat/onbeat/postgres"
)

// An instance moves the tasks of a database to its Redis.
func ExampleConfig() {
	c := onbeat.Config{Namespace: "shop", Outbox: sqloutbox.Config{URL: "postgres://shop:secret@db:5432/shop"}}
	fmt.Println(c.Outbox.Validate(), c.Outbox)
	// Output:
	// <nil> postgres://shop:…@db:5432/shop
}
