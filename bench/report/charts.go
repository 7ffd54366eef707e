package report

import (
	"fmt"
	"image/color"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/onbeat/onbeat/bench/scenario"
)

// colours are those of the peers, apart also for those who do not tell red from green.
var colours = map[string]color.Color{
	"onbeat": color.RGBA{0x00, 0x72, 0xb2, 255},
	"raw":    color.RGBA{0x99, 0x99, 0x99, 255},
	"asynq":  color.RGBA{0xd5, 0x5e, 0x00, 255},
	"bullmq": color.RGBA{0xcc, 0x79, 0xa7, 255},
	"river":  color.RGBA{0x00, 0x9e, 0x73, 255},
}

var peerOrder = []string{"onbeat", "raw", "asynq", "bullmq", "river"}

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.BackgroundColor = color.White
	p.Title.Padding, p.Legend.Padding = vg.Points(6), vg.Points(2)
	p.Legend.Top = true
	return p
}

func (p *page) save(c *plot.Plot, name string) (string, error) {
	return name, c.Save(22*vg.Centimeter, 11*vg.Centimeter, filepath.Join(p.charts, name))
}

// barsS2 draws tasks a second: a group for each concurrency, a bar for each peer.
func barsS2(p *page) (string, error) {
	c := newPlot("Dispatch of overdue tasks (memory only)", "concurrency", "tasks a second")
	all := p.all.of("", "S2").where(stored("memory", "", 0))
	kinds := []struct {
		name string
		ok   func(*Result) bool
	}{
		{"10", func(r *Result) bool { return !r.Params.Best && r.Params.Concurrency == 10 }},
		{"100", func(r *Result) bool { return !r.Params.Best && r.Params.Concurrency == 100 }},
		{"best found", func(r *Result) bool { return r.Params.Best }},
	}
	const width = 0.9 * vg.Centimeter
	for i, name := range peerOrder {
		values := make(plotter.Values, len(kinds))
		for k, kind := range kinds {
			values[k] = all.of(name, "S2").where(kind.ok).mid("tasks_per_s")
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return "", err
		}
		bars.Color, bars.LineStyle.Width = colours[name], 0
		bars.Offset = width * vg.Length(i-2)
		c.Add(bars)
		c.Legend.Add(name, bars)
	}
	c.Legend.Left = true
	c.NominalX(kinds[0].name, kinds[1].name, kinds[2].name)
	c.X.Min, c.X.Max = -0.6, float64(len(kinds))-0.4
	c.Y.Tick.Marker = thousandTicks{}
	return p.save(c, "s2-dispatch.svg")
}

// thousandTicks writes large numbers so that they can be read.
type thousandTicks struct{}

func (thousandTicks) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = number(ticks[i].Value)
		}
	}
	return ticks
}

// linesS3 draws the distribution of the lag at 1,000 tasks a second: how many begin within how many milliseconds.
func linesS3(p *page) (string, error) {
	all := p.all.of("", "S3")
	rate := 1000
	if len(all.where(func(r *Result) bool { return r.Params.Rate == rate })) == 0 {
		rate = all[0].Params.Rate
	}
	c := newPlot(fmt.Sprintf("Start of the handler, after the due time, at %s tasks a second", thousands(rate)), "ms after the due time (early counts as 0.01)", "share of tasks")
	c.X.Scale, c.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	c.X.Min, c.X.Max, c.Y.Min, c.Y.Max = 0.01, 100_000, 0, 1
	for _, name := range peerOrder {
		for _, tuned := range []bool{false, true} {
			runs := all.of(name, "S3").where(func(r *Result) bool { return r.Params.Rate == rate && r.Params.Tuned == tuned })
			if len(runs) == 0 {
				continue
			}
			var points plotter.XYs
			for _, q := range scenario.Quantiles {
				points = append(points, plotter.XY{X: max(runs.mid("lag_"+q.Name+"_ms"), 0.01), Y: q.At})
			}
			points = append(points, plotter.XY{X: max(runs.mid("lag_max_ms"), 0.01), Y: 1})
			if err := addLine(c, points, name, tuned); err != nil {
				return "", err
			}
		}
	}
	c.Legend.Top = false
	return p.save(c, "s3-lag.svg")
}

func addLine(c *plot.Plot, points plotter.XYs, name string, dashed bool) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = colours[strings.Fields(name)[0]], 2
	if dashed {
		line.Dashes = []vg.Length{5, 3}
		name += " tuned"
	}
	c.Add(line)
	c.Legend.Add(name, line)
	return nil
}

// linesS6 draws the Redis time of a dispatched task against how many are pending.
func linesS6(p *page) (string, error) {
	c := newPlot("Redis time to dispatch a task, while others are pending", "pending tasks of the far future", "µs of Redis a task")
	c.X.Scale, c.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	c.Y.Min = 0
	for _, name := range peerOrder {
		var points plotter.XYs
		for _, rs := range p.all.of(name, "S6").groups() {
			points = append(points, plotter.XY{X: float64(rs[0].Params.Backlog), Y: rs.mid("redis_cpu_us_per_task")})
		}
		if len(points) == 0 {
			continue
		}
		if err := addLine(c, points, name, false); err != nil {
			return "", err
		}
	}
	c.Legend.Left = true
	c.Y.Max *= 1.3 // room for the legend
	return p.save(c, "s6-growth.svg")
}
