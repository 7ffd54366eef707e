package dashboard

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestAssets_areThereAndEachIsUsed(t *testing.T) {
	t.Parallel()
	s := open(t)
	used := map[string]bool{}
	for i := range list {
		names := s.loaded(s.html(&list[i], ""))
		if !slices.Contains(names, "app.js") || !slices.Contains(names, "app.css") {
			t.Errorf("%s loads only %q", list[i].Name, names)
		}
		for _, name := range names {
			used[name] = true
		}
	}
	used["chart.js"] = strings.Contains(source(t, "pages/trends.js"), "new URL('chart.js'")
	for name := range s.assets.list {
		if !used[name] {
			t.Errorf("no page loads %s", name)
		}
	}
	entry := source(t, "app.js")
	for i := range list {
		for _, name := range reached(t, &list[i]) {
			used[name] = true
		}
		if want := "import('./pages/" + list[i].Name + ".js')"; !strings.Contains(entry, want) {
			t.Errorf("app.js has no %s", want)
		}
	}
	for _, name := range modules(t) {
		if name != "app.js" && !used[name] {
			t.Errorf("no page imports %s", name)
		}
	}
}

func TestPages_areLight(t *testing.T) {
	t.Parallel()
	const most = 100_000
	s := open(t)
	for i := range list {
		w := s.ask(http.MethodGet, address(&list[i]), "")
		packed := s.ask(http.MethodGet, address(&list[i]), "", "Accept-Encoding", "gzip")
		html, sum := packed.Body.Len(), packed.Body.Len()
		if z, err := gzip.NewReader(packed.Body); err != nil || packed.Header().Get("Content-Encoding") != "gzip" {
			t.Errorf("%s is not compressed: %v", list[i].Name, err)
		} else if text, err := io.ReadAll(z); err != nil || string(text) != w.Body.String() {
			t.Errorf("%s: what is packed is something else: %v", list[i].Name, err)
		}
		names := s.loaded(w.Body.String())
		for _, name := range names {
			sum += s.ask(http.MethodGet, s.mustURL(name), "").Body.Len()
		}
		t.Logf("%s: %.1f KB, of which %.1f KB of HTML, and %d assets", list[i].Name, float64(sum)/1000, float64(html)/1000, len(names))
		if sum > most {
			t.Errorf("%s: %d bytes, and %d are the most", list[i].Name, sum, most)
		}
	}
}

func TestAssets_mayBeKeptForEver(t *testing.T) {
	t.Parallel()
	s := open(t)
	kinds := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
	for name := range s.assets.list {
		packed := s.ask(http.MethodGet, s.mustURL(name), "")
		plain := s.ask(http.MethodGet, s.mustURL(name), "", "Accept-Encoding", "identity")
		z, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := io.ReadAll(z)
		if err != nil || !bytes.Equal(text, plain.Body.Bytes()) {
			t.Errorf("%s: what is packed is something else: %v", name, err)
		}
		for how, h := range map[string]http.Header{"gzip": packed.Header(), "": plain.Header()} {
			if h.Get("Content-Type") != kinds[path.Ext(name)] || h.Get("Content-Encoding") != how || h.Get("Vary") != "Accept-Encoding" ||
				h.Get("Cache-Control") != "public, max-age=31536000, immutable" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v", name, h)
			}
		}
	}
}

// In the middle of a rollout a page asks an instance for the assets of another release. It gets its own, which must not be kept under
// that address.
func TestAssets_ofAnotherReleaseAreNotKept(t *testing.T) {
	t.Parallel()
	s := open(t)
	own := s.mustURL("app.css")
	w := s.ask(http.MethodGet, strings.Replace(own, s.assets.hash, "0123456789abcdef", 1), "", "Accept-Encoding", "identity")
	if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "no-store" || w.Body.String() != string(s.assets.list["app.css"].plain) {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	for _, url := range []string{
		strings.Replace(own, s.assets.hash+"/", "", 1), own + "/x", own + "x",
		strings.Replace(own, "app.css", "nope.js", 1), strings.Replace(own, "app.css", "", 1), strings.Replace(own, "app.css", "pages/", 1),
		"/assets/" + s.assets.hash,
	} {
		if w := s.ask(http.MethodGet, url, ""); w.Code != http.StatusNotFound || strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %v", url, w.Code, w.Header())
		}
	}
	if w := s.ask(http.MethodGet, own, ""); w.Code != http.StatusOK {
		t.Errorf("%s: %d", own, w.Code)
	}
}
