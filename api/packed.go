package api

import (
	"compress/gzip"
	"net/http"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2/negotiation"
)

// mayPack reports whether an answer may be compressed: those that grow with the number of schedules (a beat of 10,000 has over a
// megabyte), and a list of tasks without payloads.
//
// The length of a compressed answer tells whether a text in it comes twice, so an answer must not have a secret beside text that
// somebody else chooses (BREACH): schedules are compressed only for those who see them without secrets. None of these has a text of
// its request in it: the refusal of a parameter is no success, and is not compressed. And no other site can have a browser ask with its
// cookie, which is SameSite=Strict.
func mayPack(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	switch r.URL.Path {
	case "/v1/audit", "/v1/beat":
		return true
	case "/v1/schedules":
		return !identityOf(r.Context()).Role.May(Operator)
	case "/v1/tasks":
		return r.URL.Query().Get("brief") == "true"
	}
	return false
}

// leastPacked is how many bytes an answer must have to be worth compressing.
const leastPacked = 1 << 10

var packers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is a known one
	return z
}}

// pack compresses a reply that is long, if the client takes it so. A middleware of a library that does this beside the limits, which
// have the whole reply in memory anyway, adds 600 KB to the program.
func (b *buffer) pack(r *http.Request) {
	if !mayPack(r) {
		return
	}
	b.header.Add("Vary", "Accept-Encoding")
	accepted := strings.ToLower(strings.Join(r.Header.Values("Accept-Encoding"), ","))
	if b.full || b.status != http.StatusOK || b.body.Len() < leastPacked || negotiation.SelectQValue(accepted, []string{"identity", "gzip"}) != "gzip" {
		return
	}
	small := &buffer{header: b.header, status: b.status, memory: b.memory}
	z, _ := packers.Get().(*gzip.Writer)
	z.Reset(small)
	_, _ = z.Write(b.body.Bytes()) // if it fails, small is full
	_ = z.Close()
	packers.Put(z)
	b.release()
	*b = *small
	b.header.Set("Content-Encoding", "gzip")
}
