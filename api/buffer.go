package api

import (
	"bytes"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// buffer is a reply in memory.
type buffer struct {
	header http.Header
	status int
	body   bytes.Buffer
	memory share
	taken  int
	full   bool
}

// Header returns the header of the reply.
func (b *buffer) Header() http.Header { return b.header }

// WriteHeader sets the status of the reply, once.
func (b *buffer) WriteHeader(status int) {
	if b.status == 0 && status >= 200 {
		b.status = status
	}
}

// reserve takes memory for the work on a request, which its reply may use: work that was done is not refused for its answer. It
// reports whether there is enough.
func (b *buffer) reserve(n int) bool {
	if !b.memory.take(n) {
		return false
	}
	b.taken += n
	return true
}

// pageCost is how many times its bytes of records a page takes: they are there as records, as tasks and as JSON, some of it copied.
const pageCost = 6

// hold takes the memory of a page that has this many bytes of records. Memory that the work has taken before is part of it.
func (b *buffer) hold(records int) error {
	if more := pageCost*records - b.taken; more > 0 && !b.reserve(more) {
		return errMemory
	}
	return nil
}

// shrink gives back what the reply does not use.
func (b *buffer) shrink() {
	if spare := b.taken - b.body.Cap(); spare > 0 {
		b.memory.give(spare)
		b.taken -= spare
	}
}

// Write adds to the reply. If there is no memory for more, send refuses the request; an error would be a bug to the writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	if need := b.body.Len() + len(p); need > b.taken {
		grown := max(2*b.taken, need)
		if b.full = b.full || !b.memory.take(grown-b.taken); b.full {
			return len(p), nil
		}
		b.taken = grown
		b.body.Grow(grown - b.body.Len())
	}
	return b.body.Write(p)
}

// SetReadDeadline does nothing: the body has been read.
func (b *buffer) SetReadDeadline(time.Time) error { return nil }

// reset forgets what has been written.
func (b *buffer) reset() {
	clear(b.header)
	b.body.Reset()
	b.status = 0
}

// release gives the memory back.
func (b *buffer) release() {
	b.memory.give(b.taken)
	b.taken = 0
}

// send writes the reply to the client.
func (b *buffer) send(w http.ResponseWriter) {
	if b.full {
		b.reset()
		later(w, errMemory)
		return
	}
	if b.status == 0 {
		b.status = http.StatusOK
	}
	maps.Copy(w.Header(), b.header)
	if b.status != http.StatusNoContent && b.status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(b.body.Len()))
	}
	w.WriteHeader(b.status)
	_, _ = w.Write(b.body.Bytes())
}
