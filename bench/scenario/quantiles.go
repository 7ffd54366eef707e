package scenario

import (
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/bench/wire"
)

// Quantiles are the points of a distribution that are written down, as they are named in metrics.
var Quantiles = []struct {
	Name string
	At   float64
}{
	{"p1", 0.01}, {"p5", 0.05}, {"p10", 0.10}, {"p25", 0.25}, {"p50", 0.50}, {"p75", 0.75}, {"p90", 0.90}, {"p95", 0.95},
	{"p99", 0.99}, {"p99.9", 0.999},
}

// quantiles adds the points of a distribution, and how many of it are below zero.
func quantiles(m wire.Metrics, name string, list []time.Duration) {
	if len(list) == 0 {
		return
	}
	Delays(m, name, list)
	early, _ := slices.BinarySearch(list, 0)
	m["early"] = float64(early)
}

// Delays adds the points of a distribution in milliseconds: name_p50_ms and so on, name_max_ms and name_n. It sorts the list.
func Delays(m wire.Metrics, name string, list []time.Duration) {
	if len(list) == 0 {
		return
	}
	slices.Sort(list)
	for _, q := range Quantiles {
		m[name+"_"+q.Name+"_ms"] = ms(list[min(int(q.At*float64(len(list))), len(list)-1)])
	}
	m[name+"_max_ms"] = ms(list[len(list)-1])
	m[name+"_n"] = float64(len(list))
}

func ms(d time.Duration) float64 {
	f, _ := strconv.ParseFloat(strconv.FormatFloat(d.Seconds()*1e3, 'f', 4, 64), 64)
	return f
}

// timed is the median time of some calls, in milliseconds.
func timed(calls int, fn func() error) (float64, error) {
	list := make([]time.Duration, calls)
	for i := range list {
		from := time.Now()
		if err := fn(); err != nil {
			return 0, err
		}
		list[i] = time.Since(from)
	}
	slices.Sort(list)
	return ms(list[calls/2]), nil
}
