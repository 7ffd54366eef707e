package handlers_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/task"
)

// kept runs a handler that puts texts out, and returns what is kept.
func kept(t *testing.T, x *task.Task, limit int, texts ...string) string {
	t.Helper()
	ctx := handlers.KeepOutput(handlers.NewContext(t.Context(), x), limit)
	inner, cancel := context.WithCancel(ctx) // as a middleware makes it
	defer cancel()
	for _, text := range texts {
		handlers.Output(inner, text)
	}
	return handlers.Kept(ctx, x)
}

func TestOutput_isWhatTheLastCallSaid(t *testing.T) {
	t.Parallel()
	x := &task.Task{}
	for _, tt := range []struct {
		limit int
		texts []string
		want  string
	}{
		{10, nil, ""},
		{10, []string{"12 rows", "13 rows"}, "13 rows"},
		{10, []string{"12 rows", ""}, ""},
		{10, []string{"0123456789"}, "0123456789"},
		{10, []string{"0123456789a"}, "0123456…"},
		{10, []string{"012345é789"}, "012345…"}, // no character is cut in two
		{10, []string{"a\xff\xfeb"}, "a\uFFFDb"},
		{2, []string{"abc"}, "…"},
	} {
		if got := kept(t, x, tt.limit, tt.texts...); got != tt.want {
			t.Errorf("%q in %d: %q, want %q", tt.texts, tt.limit, got, tt.want)
		}
	}
	if got := kept(t, x, 16<<10, strings.Repeat("x", 1<<20)); len(got) != 16<<10 {
		t.Errorf("%d bytes", len(got))
	}
}

// Without an archive, and outside of a run, a handler may call Output all the same.
func TestOutput_withoutAnArchiveDoesNothing(t *testing.T) {
	t.Parallel()
	handlers.Output(t.Context(), "12 rows")
	if got := handlers.Kept(t.Context(), &task.Task{}); got != "" {
		t.Errorf("%q", got)
	}
}

// A handler may leave goroutines behind that go on putting out.
func TestOutput_byManyAtOnce(t *testing.T) {
	t.Parallel()
	ctx := handlers.KeepOutput(t.Context(), 100)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 100 {
				handlers.Output(ctx, fmt.Sprint(i))
				_ = handlers.Kept(ctx, &task.Task{})
			}
		})
	}
	all.Wait()
	if got := handlers.Kept(ctx, &task.Task{}); len(got) != 1 {
		t.Errorf("%q", got)
	}
}

// No output has a secret of the payload in it, wherever it is cut.
func TestOutput_hidesWhatIsSecret(t *testing.T) {
	t.Parallel()
	const value = "s3cr\"et/of-the-card"
	x := &task.Task{Payload: []byte(`{"card":"s3cr\"et/of-the-card"}`), Secret: []string{"card"}}
	for _, text := range []string{value, "card " + value + ".", fmt.Sprintf("%q", value), strings.ToUpper(value)} {
		if got := kept(t, x, 100, text); strings.Contains(strings.ToLower(got), "of-the") || !strings.Contains(got, secret.Masked) {
			t.Errorf("%q: %q", text, got)
		}
	}
	for n := range 40 { // the end of what is kept falls anywhere within it
		if got := kept(t, x, 30, strings.Repeat("x", n)+value); strings.Contains(got, "s3cr") {
			t.Errorf("%q", got)
		}
	}
	many := &task.Task{Payload: []byte(`[` + values(1001) + `]`), Secret: []string{"*"}}
	if got := kept(t, many, 100, "value-7"); strings.Contains(got, "value") && !strings.Contains(got, "not shown") {
		t.Errorf("%q", got)
	}
}

func values(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"value-%d"`, i)
	}
	return strings.Join(list, ",")
}

func TestHTTP_putsOutTheBeginningOfTheAnswer(t *testing.T) {
	t.Setenv("API_TOKEN", "token-of-the-day")
	h := newHTTP(t, handlers.HTTPConfig{PassEnv: []string{"API_TOKEN"}})
	for _, tt := range []struct {
		name, body string
		code       int
		want       string
	}{
		{"none", "", 200, ""},
		{"short", "12 rows\n", 200, "12 rows\n"},
		{"long", strings.Repeat("x", 5000), 200, strings.Repeat("x", 97) + "…"},
		{"a failure", "no rows", 500, "no rows"},
		{"a variable", "sent token-of-the-day", 200, "sent ${API_TOKEN}"},
		{"a secret", "of card-of-ann", 200, "of ***"},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.code)
			_, _ = w.Write([]byte(tt.body))
		})
		x := &task.Task{ID: "id", Type: "http", Secret: []string{"body.card"}}
		x.Payload = payload("url", s.URL, "headers", map[string]string{"Token": "${API_TOKEN}"}, "body", map[string]string{"card": "card-of-ann"})
		ctx := handlers.KeepOutput(t.Context(), 100)
		err := h.Handle(ctx, x)
		if got := handlers.Kept(ctx, x); got != tt.want || (err == nil) != (tt.code == 200) {
			t.Errorf("%s: %q, want %q; %v", tt.name, got, tt.want, err)
		}
	}
}

func FuzzOutput(f *testing.F) {
	f.Add("some text with the card-of-ann in it", 10)
	f.Add("card-of-anncard-of-ann\xff", 30)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		x := &task.Task{Payload: []byte(`{"card":"card-of-ann"}`), Secret: []string{"card"}}
		limit = max(limit, 3)
		if got := kept(t, x, limit, text); !utf8.ValidString(got) || len(got) > limit || strings.Contains(got, "card-of-ann") {
			t.Errorf("%q: %q of %d bytes", text, got, len(got))
		}
	})
}
