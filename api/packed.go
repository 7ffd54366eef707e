package api

import (
	"compress/gzip"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// packed are the answers that grow with the number of schedules: a beat of 10,000 has over a megabyte.
//
// What is compressed tells by its length whether a text in it comes twice, so an answer must not have a secret beside text that
// somebody else chooses (BREACH). None of these has a text of its request in it: what refuses a parameter is no success, and goes out
// as it is, where the middlewares that exist would compress it too. And no other site can have a browser ask with its cookie, which is SameSite=Strict.
var packed = []string{"/v1/audit", "/v1/beat", "/v1/schedules"}

// leastPacked is how many bytes an answer has that is worth it.
const leastPacked = 1 << 10

// pack compresses the answers that are long for those who take them so.
func pack(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !slices.Contains(packed, r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Add("Vary", "Accept-Encoding")
		if !takesGzip(r.Header.Values("Accept-Encoding")) {
			next.ServeHTTP(w, r)
			return
		}
		p := &packer{ResponseWriter: w}
		next.ServeHTTP(p, r)
		p.close()
	})
}

// takesGzip reports whether a client takes gzip. One that sends "gzip;q=0" does not.
func takesGzip(accepts []string) bool {
	for part := range strings.SplitSeq(strings.Join(accepts, ","), ",") {
		name, weight, weighed := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		_, value, _ := strings.Cut(weight, "=")
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		return !weighed || err == nil && q > 0
	}
	return false
}

var packers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is a known one
	return z
}}

// packer compresses an answer if its first bytes are many: JSON is written at once. It holds the status back until then.
type packer struct {
	http.ResponseWriter
	status int
	begun  bool
	zip    *gzip.Writer
}

// Unwrap is read by [http.ResponseController].
func (p *packer) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// WriteHeader notes the status.
func (p *packer) WriteHeader(status int) { p.status = status }

// Write writes a part of the body.
func (p *packer) Write(body []byte) (int, error) {
	p.begin(len(body))
	if p.zip != nil {
		return p.zip.Write(body)
	}
	return p.ResponseWriter.Write(body)
}

func (p *packer) begin(size int) {
	if p.begun {
		return
	}
	p.begun = true
	if (p.status == 0 || p.status == http.StatusOK) && size >= leastPacked && p.Header().Get("Content-Encoding") == "" {
		p.Header().Set("Content-Encoding", "gzip")
		p.Header().Del("Content-Length")
		p.zip, _ = packers.Get().(*gzip.Writer)
		p.zip.Reset(p.ResponseWriter)
	}
	if p.status != 0 {
		p.ResponseWriter.WriteHeader(p.status)
	}
}

// close writes what is left. An answer that a fault has cut off is not closed, so that its client sees that it is cut.
func (p *packer) close() {
	p.begin(0)
	if p.zip == nil {
		return
	}
	_ = p.zip.Close() // the client has gone
	p.zip.Reset(nil)
	packers.Put(p.zip)
}
