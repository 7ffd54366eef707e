package handlers

import (
	"context"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// Output says what the run of ctx has put out, for the archive of runs, which keeps the beginning of it: 1 KiB, or as much as
// archive.output says. The last call of a run counts. Secret values of the payload are hidden as in errors, see [Hide]; other
// secrets do not belong in an output.
//
// Output does nothing outside of a run, and without an archive.
func Output(ctx context.Context, text string) {
	if o := outputOf(ctx); o != nil {
		o.put(text, false)
	}
}

// outputLimit returns how many bytes of an output are kept; 0: none.
func outputLimit(ctx context.Context) int {
	if o := outputOf(ctx); o != nil {
		return o.limit
	}
	return 0
}

type outputKey struct{}

// OutputKey is the key under which a context carries the output of its run, for a caller that makes its own context type.
// Other callers use [KeepOutput].
var OutputKey any = outputKey{}

// KeepOutput returns the context of one run, in which [Output] keeps up to limit bytes for [Kept].
func KeepOutput(ctx context.Context, limit int) context.Context {
	return &output{Context: ctx, limit: limit}
}

// Kept returns what the run of ctx, and of a task, has put out, without what is secret of the task's payload: valid UTF-8, and at
// most as many bytes as [KeepOutput] was told. It returns "" for a context that keeps none.
func Kept(ctx context.Context, t *task.Task) string {
	o := outputOf(ctx)
	if o == nil {
		return ""
	}
	return o.shown(t)
}

// output is a context that keeps the output of a run.
type output struct {
	context.Context
	limit int

	mu   sync.Mutex // a handler may leave goroutines behind
	text string
	end  bool // text may lack its beginning, and its end is kept
}

func outputOf(ctx context.Context) *output {
	o, _ := ctx.Value(outputKey{}).(*output)
	return o
}

// Value finds the output of the run by [OutputKey].
func (o *output) Value(key any) any {
	if key == OutputKey {
		return o
	}
	return o.Context.Value(key)
}

// heldOutput is how much of an output waits for the end of its run: more than is kept of it, because a secret that is cut off
// could not be found.
const heldOutput = 64 << 10

func (o *output) put(text string, end bool) {
	switch over := len(text) - heldOutput; {
	case over > 0 && end:
		text = strings.Clone(text[over:])
	case over > 0:
		text = strings.Clone(text[:heldOutput])
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text, o.end = text, end
}

func (o *output) shown(t *task.Task) string {
	o.mu.Lock()
	text, end := o.text, o.end
	o.mu.Unlock()
	if text == "" {
		return ""
	}
	secrets := secret.OfPayload(t.Payload, t.Secret)
	text = secrets.Hide(strings.ToValidUTF8(text, string(utf8.RuneError)))
	if end {
		return cutStart(secrets.HideEnds(text), o.limit)
	}
	if len(text) <= o.limit {
		return text
	}
	return wording.Cut(text, max(o.limit-len("…"), 0))
}

// cutStart shortens s to its end, of at most limit bytes with an ellipsis before it, and cuts no character in two.
func cutStart(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	from := len(s) - max(limit-len("…"), 0)
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return "…" + s[from:]
}
