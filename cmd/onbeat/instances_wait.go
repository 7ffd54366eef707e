package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
)

// readyCount is a flag such as "ready=3".
type readyCount int

// UnmarshalText reads the value of the flag.
func (n *readyCount) UnmarshalText(b []byte) error {
	text, ok := strings.CutPrefix(string(b), "ready=")
	v, err := strconv.Atoi(text)
	if !ok || err != nil || v < 1 {
		return &usageError{fmt.Sprintf("%q: not a number of ready instances", b), "for example ready=2"}
	}
	*n = readyCount(v)
	return nil
}

// lookEvery is the time between two looks of a command that waits.
const lookEvery = 200 * time.Millisecond

// watch looks at the instances again and again. It uses the admin interface alone, so it cannot tell how the namespace is
// reached.
type watch struct {
	client   *client // nil: not connected yet
	timeout  time.Duration
	progress *progress
}

// errTimeUp: a command waited for something that did not come in time.
var errTimeUp = errors.New("timed out")

// list looks until missing returns "", and returns that list. While Redis is away it tries again. When the time is over it
// returns an [errTimeUp] that says what was missing, or why Redis did not answer. It returns any other error at once.
func (w *watch) list(ctx context.Context, a *app, missing func(*admin.InstanceList) string) (*admin.InstanceList, error) {
	ctx, done := context.WithTimeoutCause(ctx, w.timeout, errTimeUp)
	defer done()
	defer w.progress.clear()
	const unheard = "redis has not answered"
	lack := unheard
	for {
		list, err := w.look(ctx, a)
		switch {
		case err == nil:
			if lack = missing(list); lack == "" {
				return list, nil
			}
		case store.Retryable(err) && (ctx.Err() == nil || lack == unheard):
			lack = admin.Brief(err)
		case ctx.Err() != nil:
		default:
			return nil, err
		}
		w.progress.say("%s", lack)
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
		}
		switch {
		case errors.Is(context.Cause(ctx), errTimeUp):
			return nil, fmt.Errorf("%w after %s: %s", errTimeUp, wording.Span(w.timeout), lack)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
	}
}

func (w *watch) look(ctx context.Context, a *app) (*admin.InstanceList, error) {
	if w.client == nil {
		cl, err := a.connect(ctx)
		if err != nil {
			return nil, err
		}
		w.client = cl
	}
	list, err := w.client.Instances.List(ctx)
	return &list, err
}

// Close closes the connection, if there is one.
func (w *watch) Close() {
	if w.client != nil {
		w.client.Close()
	}
}

// unready returns what is missing until n instances of a release are ready, or "". A nil release is any.
func unready(list *admin.InstanceList, n int, release *string) string {
	ready, others := 0, map[string]int{}
	for i := range list.Items {
		x := &list.Items[i]
		switch {
		case release != nil && x.Release != *release:
		case x.LeaseLeftMS <= 0:
			others["lost"]++
		case x.Suspected:
			others["suspected"]++
		case x.State == "ready":
			ready++
		case x.ProbationLeftMS > 0:
			others["on probation"]++
		default:
			others[x.State]++
		}
	}
	if ready >= n {
		return ""
	}
	of := ""
	if release != nil {
		of = fmt.Sprintf(" of release %q", *release)
	}
	text := fmt.Sprintf("%d of %d instances%s ready", ready, n, of)
	for _, state := range slices.Sorted(maps.Keys(others)) {
		text += fmt.Sprintf(", %d %s", others[state], state)
	}
	return text
}
