package embedded_test

import (
	"context"
	"fmt"

	"github.com/onbeat/onbeat/internal/embedded"
)

// A Redis inside this process, for as long as this program needs one.
func ExampleStart() {
	server, err := embedded.Start(context.Background(), embedded.Options{InProcess: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	fmt.Println(server)
	// Output: in-process Redis (miniredis; data is lost at exit)
}
