package config_test

import (
	"fmt"
	"os"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/internal/field"
)

func ExampleFile_Check() {
	f, err := config.Parse("shop.yaml", []byte(`
namespace: shop
lease: 5s
schedules:
  - name: warm-cache
    every: 1s
    task: http
    payload: {url: "https://shop.example/warm"}
  - name: report
    cron: "0 25 * * *"
    task: http
    payload: {url: shop.example/report}
`), os.Getenv)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Dispatcher.Namespace, f.Dispatcher.Lease, len(f.Schedules))
	for _, p := range config.ProblemsOf(f.Check()) {
		fmt.Printf("line %d: %s\n", p.Line, field.Of(p).Field)
	}
	// Output:
	// shop 5s 2
	// line 10: schedules[1].cron hour
	// line 12: schedules[1].payload.url
}
