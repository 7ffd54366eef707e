package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/onbeat/onbeat/internal/queue"
)

// Limits of requests.
const (
	atOnce      = 64               // requests that are worked on at once
	perSecond   = 10_000           // requests of all senders
	perSender   = 8_000            // requests of one of them
	strangeRate = 1_000            // requests a second of all who have no token
	paceTime    = time.Second / 4  // for which a request that comes too early waits
	batchBody   = 32 << 20         // bytes of a body that adds tasks: 10,000 with small payloads
	otherBody   = 2 << 20          // bytes of any other body, if payloads are no larger
	bufferBytes = 320 << 20        // bytes of bodies, of what reading them takes, and of replies that this process has in memory
	bodyTime    = 30 * time.Second // until a body is there
	slotTime    = 5 * time.Second  // until a request is worked on
	workTime    = 30 * time.Second // of the work
	writeTime   = 30 * time.Second // until a reply is taken
	briefTime   = 5 * time.Second  // the same of a probe, and of senders that are not let in; also until their body is there
	knownAtMost = 1_000            // senders whose rate is remembered
	retryAfter  = 1 * time.Second  // when to try again
	chunk       = 64 << 10         // bytes of a body that are read at once
)

// limits bound what requests take: memory, time, Redis. A body is read before its request gets a slot, and a reply is written
// after the slot is free, so a slow client holds neither the slot nor, beyond the bytes in all, memory.
type limits struct {
	log     zerolog.Logger
	body    int64
	all     *rate.Limiter
	strange *rate.Limiter // of those without a token: they take none of the requests of others
	slots   chan struct{}
	bytes   budget
	senders senders
}

func newLimits(cfg *Config) *limits {
	l := &limits{
		log: cfg.Log, body: max(otherBody, 2*int64(cfg.Limits.Payload)), all: rate.NewLimiter(perSecond, perSecond),
		strange: rate.NewLimiter(strangeRate, strangeRate), slots: make(chan struct{}, atOnce), senders: senders{each: map[string]*sender{}},
	}
	most := int(max(batchBody, l.body))
	l.bytes.free.Store(int64(max(bufferBytes, 2*(2*most+l.cost(most, maxBatch))))) // half is enough for the largest request
	return l
}

// cost returns how many bytes the work on a body takes beside it: a JSON document of many keys takes several times its own size, but of
// a batch one task is read at a time. So a record of each task, and all payloads twice, come on top of the largest task.
func (l *limits) cost(size, objects int) int {
	return 2*size + 8*min(size, int(l.body)) + min(objects, maxBatch)<<10
}

// Why a request is not served.
var (
	errRate   = &refusal{http.StatusTooManyRequests, "rate", "too many requests a second", "try again later; a batch adds thousands of tasks at once"}
	errBusy   = &refusal{http.StatusServiceUnavailable, "busy", "too many requests at once", "try again later"}
	errMemory = &refusal{http.StatusServiceUnavailable, "memory", "too many large requests or replies at once", "try again later"}
	errNoBody = &refusal{http.StatusRequestEntityTooLarge, "too-large", "this request takes no body", ""}
	errSlow   = &refusal{http.StatusRequestTimeout, "slow", "the body did not come in time", ""}
	errCut    = &refusal{http.StatusBadRequest, "cut", "the body ended early", ""}
	errBug    = &refusal{http.StatusInternalServerError, "internal", "internal error", "the log of the server has it"}
)

// hurry bounds how long a client may hold up a connection: by sending no body, or by taking no reply. The server reads the rest
// of a body even if nobody asked for it, and a deadline for replies outlives the request it was for.
func hurry(w http.ResponseWriter, body, reply time.Duration) {
	now, rc := time.Now(), http.NewResponseController(w)
	_ = rc.SetReadDeadline(now.Add(body))
	_ = rc.SetWriteDeadline(now.Add(reply))
}

// turnAway answers a request that is not let in: a browser that opens a page is sent to sign in. Those who guess tokens are slowed
// down, whatever they ask for, and hung up on when they are many.
func (l *limits) turnAway(w http.ResponseWriter, r *http.Request, why *refusal) {
	if l.paceStranger(w, r) {
		l.refuse(w, r, why)
	}
}

// refuse answers a request that is not let in and has had its pace.
func (*limits) refuse(w http.ResponseWriter, r *http.Request, why *refusal) {
	if why.status == http.StatusUnauthorized && isPage(r) {
		toSignIn(w, r, why)
		return
	}
	deny(w, why)
}

// paceStranger lets a request without a token wait until the rate allows it. It answers one that comes much too soon.
func (l *limits) paceStranger(w http.ResponseWriter, r *http.Request) bool {
	now := time.Now()
	turn := l.strange.ReserveN(now, 1)
	if wait := turn.DelayFrom(now); wait <= paceTime && (wait <= 0 || pause(r.Context(), wait) == nil) {
		return true
	}
	turn.CancelAt(now)
	w.Header().Set("Connection", "close")
	later(w, errRate)
	return false
}

// open serves a request that anybody may send. It takes no body, and its answer is not gathered: so it holds its connection for a
// while, and no memory. A holder of a token is held to its own rate, not to that of strangers.
func (l *limits) open(w http.ResponseWriter, r *http.Request, holder string, next http.Handler) {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
		problem(w, errNoBody.status, errNoBody)
		return
	}
	if holder == "" && !l.paceStranger(w, r) {
		return
	}
	if holder != "" && !l.pace(r.Context(), l.senders.of(holder)) {
		later(w, errRate)
		return
	}
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Time{}) // it would end the work
	_ = rc.SetWriteDeadline(time.Now().Add(writeTime))
	next.ServeHTTP(w, r)
}

// serve serves a request of the holder of a token within the limits.
func (l *limits) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	own := l.senders.of(identityOf(r.Context()).Name)
	if !hold(r.Context(), own) {
		w.Header().Set("Connection", "close")
	}
	if !l.pace(r.Context(), own) {
		later(w, errRate)
		return
	}
	rc := http.NewResponseController(w)
	hurry(w, bodyTime, bodyTime+slotTime+writeTime)
	b := &buffer{header: http.Header{}, memory: share{&l.bytes, own}}
	defer b.release()
	body, done := l.read(w, r, b)
	defer done()
	if body == nil {
		return
	}
	_ = rc.SetReadDeadline(time.Time{}) // it would end the work
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	if isStream(r) {
		next.ServeHTTP(w, r) // it has deadlines, and limits, of its own
		return
	}
	if !b.reserve(l.cost(len(body), bytes.Count(body, []byte("{"))) - b.taken) {
		later(w, errMemory)
		return
	}
	if !l.work(b, r.WithContext(context.WithValue(r.Context(), bodyKey{}, body)), own, next) {
		later(w, errBusy)
		return
	}
	r.Body = http.NoBody
	done() // before the client takes its time
	b.shrink()
	_ = rc.SetWriteDeadline(time.Now().Add(writeTime))
	b.send(w)
}

// pace lets a request wait until the rates allow it, and reports whether they do soon enough. A sender that keeps close to its rate
// is slowed down by that much: sent away, it would come back after a second, with many others.
func (l *limits) pace(ctx context.Context, by *sender) bool {
	now := time.Now()
	all, own := l.all.ReserveN(now, 1), by.pace.ReserveN(now, 1)
	wait := max(all.DelayFrom(now), own.DelayFrom(now))
	if wait <= paceTime && (wait <= 0 || pause(ctx, wait) == nil) {
		return true
	}
	own.Cancel() // the unused turns are for others
	all.Cancel()
	return false
}

// read reads the body of a request. If it cannot be used, read has answered the request, and returns nil. Done gives the
// memory back. The body of a request that only asks means nothing, so it is not kept: a stream would keep it for hours. Memory for
// the work is reserved first, if the size is known, so that of many large requests at once some are worked on.
func (l *limits) read(w http.ResponseWriter, r *http.Request, b *buffer) (body []byte, done func()) {
	taken := 0
	done = func() { b.memory.give(taken); taken = 0 }
	most := l.body
	if r.URL.Path == "/v1/tasks" {
		most = max(batchBody, most)
	}
	if r.ContentLength > most {
		tooLarge(w, most)
		return nil, done
	}
	from := http.MaxBytesReader(w, r.Body, most)
	body = []byte{}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		if _, err := io.Copy(io.Discard, from); err != nil {
			badBody(w, err, most)
			return nil, done
		}
		return body, done
	}
	if !b.reserve(l.cost(int(max(r.ContentLength, 0)), 0)) {
		w.Header().Set("Connection", "close")
		later(w, errMemory)
		return nil, done
	}
	for {
		if len(body) == cap(body) { // doubled, as append does: so the memory is counted before it is used
			end := most
			if r.ContentLength >= 0 {
				end = r.ContentLength
			}
			grown := min(max(2*cap(body), chunk), int(end)+1) // one more, to find the end
			if !b.memory.take(grown) {
				later(w, errMemory)
				return nil, done
			}
			larger := make([]byte, len(body), grown)
			copy(larger, body)
			b.memory.give(taken)
			body, taken = larger, grown
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, done
		}
		if err != nil {
			badBody(w, err, most)
			return nil, done
		}
	}
}

// badBody answers a request whose body could not be read. The connection ends with it.
func badBody(w http.ResponseWriter, err error, most int64) {
	if errors.As(err, new(*http.MaxBytesError)) {
		tooLarge(w, most)
		return
	}
	w.Header().Set("Connection", "close")
	var late interface{ Timeout() bool }
	if errors.As(err, &late) && late.Timeout() {
		problem(w, errSlow.status, errSlow)
		return
	}
	problem(w, errCut.status, errCut)
}

func tooLarge(w http.ResponseWriter, most int64) {
	w.Header().Set("Connection", "close")
	problem(w, http.StatusRequestEntityTooLarge, &http.MaxBytesError{Limit: most})
}

// later answers a request that may be repeated in a moment.
func later(w http.ResponseWriter, why *refusal) {
	w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	problem(w, why.status, why)
}

// work lets the handler answer into the buffer, in one of the slots: first of the sender's own, so that those that wait for one of all
// are of many senders. It reports whether one became free in time.
func (l *limits) work(b *buffer, r *http.Request, own *sender, next http.Handler) (worked bool) {
	wait := time.NewTimer(slotTime)
	defer wait.Stop()
	for _, slots := range []chan struct{}{own.slots, l.slots} {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-wait.C:
			return false
		case <-r.Context().Done():
			return false
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), workTime)
	defer cancel()
	defer func() {
		if l.caught(recover(), r) {
			b.reset()
			problem(b, errBug.status, errBug)
			worked = true
		}
	}()
	next.ServeHTTP(b, r.WithContext(queue.Holding(ctx, b.hold)))
	b.pack(r)
	return true
}

// caught logs what a handler panicked with, if it did.
func (l *limits) caught(bug any, r *http.Request) bool {
	if bug == nil {
		return false
	}
	l.log.Error().Any("panic", bug).Str("path", r.URL.Path).Bytes("stack", debug.Stack()).Msg("a request of the API failed: this is a bug")
	return true
}

// abort ends the connection of a request whose handler panicked while it answered: its answer is not whole.
func (l *limits) abort(r *http.Request) {
	if l.caught(recover(), r) {
		panic(http.ErrAbortHandler)
	}
}

// isStream reports whether a request asks for the stream of events.
func isStream(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/v1/events" && strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}
