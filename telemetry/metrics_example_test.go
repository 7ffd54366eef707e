package telemetry_test

import (
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/telemetry"
)

// A program gives the metrics to its dispatcher, and serves its registry.
func Example() {
	reg := prometheus.NewRegistry()
	metrics, err := telemetry.NewMetrics(reg, telemetry.Options{Version: "1.2.0", Release: "v42"})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := onbeat.Config{Namespace: "billing", Release: "v42", Observer: metrics}
	_ = cfg // d, err := onbeat.New(rdb, cfg)

	answer := httptest.NewRecorder()
	telemetry.Handler(reg).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "onbeat_build_info") {
			fmt.Print(line)
		}
	}
	// Output:
	// onbeat_build_info{release="v42",version="1.2.0"} 1
}
