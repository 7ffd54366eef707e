package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/onbeat/onbeat/internal/testredis"
)

// patience is how long a test waits for what a page should come to show. Machines that run tests are slow, and run several.
const patience = time.Minute

// tab is a page of a browser of the test's own. A warning or an error that the page logs, or does not catch, fails the test.
type tab struct {
	*testing.T
	ctx  context.Context
	base string

	mu      sync.Mutex
	allowed []*regexp.Regexp
	said    []string
	asked   int
}

// shared is the browser of all tests. It is there while one of them needs it.
var shared struct {
	sync.Mutex
	ctx   context.Context
	stop  func()
	users int
}

// use returns the browser that tests share, until the test ends.
func use(t *testing.T) context.Context {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.users == 0 {
		all, stopAll := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WSURLReadTimeout(time.Minute),
			chromedp.WindowSize(1280, 800), chromedp.Flag("lang", "en-GB"), chromedp.Env("TZ=Europe/Berlin"),
		)...)
		ctx, stop := chromedp.NewContext(all)
		if err := chromedp.Do(ctx); err != nil { // the browser lives as long as the context of its first call
			stopAll()
			t.Fatal(err)
		}
		shared.ctx, shared.stop = ctx, func() { stop(); stopAll() }
	}
	shared.users++
	t.Cleanup(func() {
		shared.Lock()
		defer shared.Unlock()
		if shared.users--; shared.users == 0 {
			shared.stop()
		}
	})
	return shared.ctx
}

// browse opens a tab for somebody who has no session yet, and likes no motion: while one page fades into the next, clicks are lost.
func browse(t *testing.T, base string) *tab {
	t.Helper()
	return newTab(t, use(t), base, chromedp.WithNewBrowserContext())
}

// another opens a further tab of the same browser: it has the same session.
func (b *tab) another() *tab {
	b.Helper()
	return newTab(b.T, b.ctx, b.base)
}

func newTab(t *testing.T, parent context.Context, base string, options ...chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{T: t, base: base}
	b.allow(`429 \(Too Many Requests\) \S+/v1/(beat|audit)\?`) // one at a time: the page asks again
	var end context.CancelFunc
	b.ctx, end = chromedp.NewContext(parent, append(options, chromedp.WithListener(b.hear))...)
	t.Cleanup(end)
	if err := chromedp.Do(b.ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.wantQuiet)
	b.looks(false, 1280, 800)
	return b
}

// chromium returns the browser to run. The shell of Debian's chromium-headless-shell has no window to draw, and takes half as long.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("ONBEAT_REQUIRE_REAL") == "1" {
		t.Fatal("there is no chromium on PATH")
	}
	t.Skip("there is no chromium on PATH")
	return ""
}

// hear notes what a page complains of, and agrees when the browser asks whether to leave a form.
func (b *tab) hear(event any) {
	switch e := event.(type) {
	case *page.EventJavascriptDialogOpening:
		b.mu.Lock()
		b.asked++
		b.mu.Unlock()
		go func() { // a test that ends meanwhile needs no answer
			_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}()
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		b.note("thrown: " + text)
	case *runtime.EventConsoleAPICalled:
		if e.Type != "error" && e.Type != "warning" {
			return
		}
		var args []string
		for _, a := range e.Args {
			args = append(args, strings.TrimSpace(string(a.Value)+" "+a.Description))
		}
		b.note("console: " + strings.Join(args, " "))
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			b.note(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	}
}

// questions is how often the browser has asked whether to leave a form that is not saved.
func (b *tab) questions() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

func (b *tab) note(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, text)
}

// allow takes it as no fault when the page complains of something that the test itself brings about.
func (b *tab) allow(pattern string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, regexp.MustCompile(pattern))
}

func (b *tab) wantQuiet() {
	b.mu.Lock()
	defer b.mu.Unlock()
next:
	for _, text := range b.said {
		for _, ok := range b.allowed {
			if ok.MatchString(text) {
				continue next
			}
		}
		b.Errorf("the page complains: %s", text)
	}
}

// do has the browser do something, or fails.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, done := context.WithTimeout(b.ctx, 2*patience)
	defer done()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// sends sends the browser a command.
func sends[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.Helper()
	ctx, done := context.WithTimeout(b.ctx, 2*patience)
	defer done()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		b.Fatal(err)
	}
}

// open goes to a page, and waits until each of its views shows something.
func (b *tab) open(path string) {
	b.Helper()
	b.do(chromedp.Navigate(b.base + path))
	b.settled()
}

// changes has a function of JavaScript change what the API answers to the pages that are opened from now on, by address and answer.
func (b *tab) changes(fn string) {
	b.Helper()
	sends(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `{
		const ask = fetch, change = ` + fn + `;
		window.fetch = async (url, options) => {
			const reply = await ask(url, options);
			return new Response(JSON.stringify(change(url, await reply.json())), reply);
		};
	}`})
}

// settled waits until no view that can be seen is loading.
func (b *tab) settled() {
	b.Helper()
	b.waits(`document.readyState === 'complete' && ![...document.querySelectorAll('[data-state=loading]')].some((e) => e.checkVisibility())`)
}

// eval evaluates an expression in the page. It may be a promise.
func (b *tab) eval(expression string) {
	b.Helper()
	value[chromedp.Void](b, expression)
}

// value is what an expression is in the page. It may be a promise.
func value[T any](b *tab, expression string) T {
	b.Helper()
	ctx, done := context.WithTimeout(b.ctx, 2*patience)
	defer done()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// waits waits until an expression is true in the page.
func (b *tab) waits(expression string) {
	b.Helper()
	testredis.Eventually(b.T, patience, func() bool {
		ctx, done := context.WithTimeout(b.ctx, patience)
		defer done()
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")")) // fails while the page changes
		return err == nil && ok
	}, "%s: it never comes to %s; it shows:\n%s", b.base, expression, lazily(b.seen))
}

// lazily is a text that is made when it is shown.
type lazily func() string

func (f lazily) String() string { return f() }

// seen is the text of the page, and where it is.
func (b *tab) seen() string {
	ctx, done := context.WithTimeout(b.ctx, patience)
	defer done()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + '\n' + document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

// shows waits until an element has a text in it.
func (b *tab) shows(selector, text string) {
	b.Helper()
	b.waits(fmt.Sprintf(`[...document.querySelectorAll(%s)].some((e) => e.checkVisibility() && e.textContent.includes(%s))`, quote(selector), quote(text)))
}

// has reports whether an element can be seen now.
func (b *tab) has(selector string) bool {
	b.Helper()
	return value[bool](b, fmt.Sprintf(`[...document.querySelectorAll(%s)].some((e) => e.checkVisibility())`, quote(selector)))
}

// text is the text of the first element now.
func (b *tab) text(selector string) string {
	b.Helper()
	text := value[string](b, fmt.Sprintf(`document.querySelector(%s)?.textContent ?? ''`, quote(selector)))
	return strings.Join(strings.Fields(text), " ")
}

// says waits until an element says all of the texts.
func (b *tab) says(selector string, texts ...string) {
	b.Helper()
	for _, text := range texts {
		b.shows(selector, text)
	}
}

// comes waits until the page is somewhere, and its views show something.
func (b *tab) comes(path string) {
	b.Helper()
	b.waits(`location.pathname + location.search === ` + quote(path))
	b.settled()
}

// back goes a step back, as by the button of the browser.
func (b *tab) back() {
	b.Helper()
	b.eval(`void setTimeout(() => history.back())`) // at once, the page might go before the browser has answered
}

// focused waits until an element has the focus.
func (b *tab) focused(selector string) {
	b.Helper()
	b.waits(`document.activeElement?.matches(` + quote(selector) + `)`)
}

// signsIn signs in with a token, by the keyboard, and waits for the page that comes then.
func (b *tab) signsIn(token, then string) {
	b.Helper()
	b.focused("#token")
	b.keys(token + kb.Enter)
	b.comes(then)
}

// tabs presses the tab key until an element has the focus, as somebody without a mouse does. Wherever the focus is meanwhile, it can be seen.
func (b *tab) tabs(selector string) {
	b.Helper()
	b.waits(fmt.Sprintf(`[...document.querySelectorAll(%s)].some((e) => e.checkVisibility())`, quote(selector)))
	for range 80 {
		b.keys(kb.Tab)
		if now := value[string](b, `(() => {
			const e = document.activeElement, s = getComputedStyle(e), box = e.getBoundingClientRect();
			const ring = s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0;
			return e === document.body || (e.matches(':focus-visible') && ring && box.width > 0 && box.height > 0) ? '' : e.outerHTML.slice(0, 100);
		})()`); now != "" {
			b.Errorf("the focus cannot be seen on %s", now)
		}
		if value[bool](b, `document.activeElement.matches(`+quote(selector)+`)`) {
			return
		}
	}
	b.Fatalf("the tab key never leads to %s", selector)
}

// click clicks on an element with the mouse, when it can be seen, is not disabled, keeps its place while the page above it comes into view, and no
// message lies over it.
func (b *tab) click(selector string) {
	b.Helper()
	b.waits(fmt.Sprintf(`[...document.querySelectorAll(%s)].some((e) => e.checkVisibility() && !e.disabled)`, quote(selector)))
	b.eval(`new Promise((resolve) => {
		let before;
		const look = () => {
			const e = [...document.querySelectorAll(` + quote(selector) + `)].find((e) => e.checkVisibility());
			e?.scrollIntoView({ block: 'center' });
			const r = e?.getBoundingClientRect(), now = JSON.stringify(r);
			if (now === before && !document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2)?.closest('.toast')) return resolve();
			before = now;
			setTimeout(look, 50);
		};
		look();
	})`)
	b.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// fills puts a text into a field in place of what is there, as somebody who types it.
func (b *tab) fills(selector, text string) {
	b.Helper()
	b.waits(`document.querySelector(` + quote(selector) + `)?.checkVisibility()`)
	b.eval(`(() => { const e = document.querySelector(` + quote(selector) + `); e.focus(); e.select?.() })()`)
	if text == "" {
		text = kb.Backspace
	}
	b.keys(text)
}

// keys types keys where the focus is.
func (b *tab) keys(keys string) {
	b.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// agrees takes the way forward in the dialog that is open, and waits until it has closed.
func (b *tab) agrees() {
	b.Helper()
	b.click("dialog[open] [data-act=ok]")
	b.waits(`!document.querySelector('dialog[open]')`)
}

// leaves leaves the dialog that is open.
func (b *tab) leaves() {
	b.Helper()
	b.click("dialog[open] [data-act=cancel]")
	b.waits(`!document.querySelector('dialog[open]')`)
}

// looks sets how the viewer likes pages to be, and how wide their window is.
func (b *tab) looks(dark bool, width, height int64) {
	b.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	sends(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	b.do(chromedp.EmulateViewport(width, height))
	b.waits(fmt.Sprintf(`innerWidth === %d`, width))
	b.eval(`new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))`) // the page has drawn itself anew
}

// quote makes a literal of JavaScript.
func quote(v any) string {
	out, _ := json.Marshal(v) //nolint:errchkjson // texts can always be written
	return string(out)
}
