package browser

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

// traced is an event of a trace. Its times are in microseconds.
type traced struct {
	Name    string
	TS, Dur float64
}

// traces has the browser trace what its pages do meanwhile, and returns the events in their order.
func (b *tab) traces(meanwhile func()) (events []traced) {
	b.Helper()
	ctx, stop := context.WithTimeout(b.ctx, 5*time.Minute)
	defer stop()
	complete := make(chan bool, 1)
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *tracing.EventDataCollected:
			for _, text := range e.Value {
				var one traced
				if err := json.Unmarshal(text, &one); err != nil {
					b.Errorf("an event of a trace: %v", err)
				}
				events = append(events, one)
			}
		case *tracing.EventTracingComplete:
			complete <- !e.DataLossOccurred
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	sends(b, tracing.Start, tracing.StartParams{TraceConfig: &tracing.TraceConfig{
		RecordMode:         tracing.TraceConfigRecordModeRecordUntilFull,
		IncludedCategories: []string{"devtools.timeline", "disabled-by-default-devtools.timeline", "disabled-by-default-devtools.timeline.frame"},
	}})
	meanwhile()
	sends(b, tracing.End, cdp.Empty{})
	select {
	case whole := <-complete:
		if !whole {
			b.Fatal("the trace lost events")
		}
	case <-ctx.Done():
		b.Fatal("the trace does not come:", ctx.Err())
	}
	slices.SortFunc(events, func(a, b traced) int { return int(a.TS - b.TS) })
	return events
}
