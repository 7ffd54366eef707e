package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

// The script and the style are made of the sources in assets. A test of the bundle fails where they are not.
//
//go:generate go run -C ../../integration ./bundle
//go:embed built assets/*.svg
var files embed.FS

// assets are the style, the script and the icons, each compressed once. Their address has a hash of all of them, so that a browser may
// keep them for ever, and never mixes those of two releases.
type assets struct {
	hash string
	list map[string]asset
}

type asset struct {
	kind          string
	plain, packed []byte
}

// packedAssets are those of this program. They are read and compressed at the first call.
var packedAssets = sync.OnceValues(readAssets)

func readAssets() (assets, error) {
	a, sum := assets{list: map[string]asset{}}, sha256.New()
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d ", name, len(text))
		sum.Write(text)
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := z.Write(text); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		a.list[path.Base(name)] = asset{kindOf(name), text, packed.Bytes()}
		return nil
	})
	a.hash = hex.EncodeToString(sum.Sum(nil)[:8])
	return a, err
}

func takesGzip(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
}

func kindOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

// url returns the address of an asset. A template that names one that is not there fails.
func (a assets) url(name string) (string, error) {
	if _, ok := a.list[name]; !ok {
		return "", fmt.Errorf("there is no asset %q", name)
	}
	return assetsPath + a.hash + "/" + name, nil
}

// serve answers for an asset, whose path is below /assets/. In place of one of another release it gives its own, which no browser keeps:
// in the middle of a rollout a page may come from one release and its modules from another, and those mostly fit.
func (a assets) serve(w http.ResponseWriter, r *http.Request) {
	hash, name, _ := strings.Cut(r.URL.Path, "/")
	f, ok := a.list[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-store")
	if hash == a.hash {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("Vary", "Accept-Encoding")
	if takesGzip(r) {
		h.Set("Content-Encoding", "gzip")
		_, _ = w.Write(f.packed)
		return
	}
	_, _ = w.Write(f.plain)
}
