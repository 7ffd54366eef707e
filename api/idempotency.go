package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// The headers of a request that may be sent twice, and of an answer that was given before.
const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotent-Replayed"
	longestKey     = 255
	claimTime      = workTime + 15*time.Second // longer than a request is worked on
	settleTime     = 5 * time.Second
	mostAnswered   = 2_000         // tasks whose answer is small enough to be kept
	retryTime      = 2 * claimTime // for which a finished task is kept, for a sender whose first try was lost
)

var (
	errRunning = &refusal{http.StatusConflict, "running", "a request with this Idempotency-Key is being worked on", "try again later"}
	errLesser  = &refusal{http.StatusForbidden, "forbidden", "this request was answered when its token had a role that may do more", ""}
	errOther   = &refusal{http.StatusUnprocessableEntity, "key-reused", "this Idempotency-Key came with another request", "use a new key for each request, and the same one to send it again"}
)

// remember answers a POST with an Idempotency-Key once: a sender that repeats it within a day gets the same answer, and nothing is
// done again. A key is of one sender and one path. Only an answer that something was done is remembered: a request that was
// refused, or failed, may be sent again with the same key.
//
// If the process dies, or Redis goes away, between the deed and the answer, the request is worked on again. The IDs of its tasks
// come from the key, so it finds those that it added: see [derived].
func remember(answers admin.Answers, next http.Handler) http.Handler {
	if answers == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys := r.Header.Values(keyHeader)
		if who := identityOf(r.Context()); r.Method != http.MethodPost || len(keys) == 0 || !who.Role.May(Operator) { // a viewer changes nothing
			next.ServeHTTP(w, r)
			return
		}
		if err := checkKey(keys); err != nil {
			problem(w, http.StatusBadRequest, err)
			return
		}
		id := hashOf(identityOf(r.Context()).Name, r.URL.EscapedPath(), keys[0])
		body := sha256.Sum256(bodyOf(r.Context())) // a copy of the body would be memory that nobody has counted
		request := hashOf(r.URL.RawQuery, r.Header.Get("If-Match"), string(body[:]))
		claim, err := answers.ClaimAnswer(r.Context(), id, request, claimTime)
		switch {
		case err != nil:
			problem(w, http.StatusServiceUnavailable, err)
		case claim.Asked == string(queue.AnswerKept):
			replay(w, r, claim.Answer)
		case claim.Asked == string(queue.AnswerOther):
			problem(w, errOther.status, errOther)
		case claim.Asked == string(queue.AnswerRunning):
			later(w, errRunning)
		default:
			answerOnce(claim, hashOf(id, request), next, w, r)
		}
	})
}

// checkKey refuses a key that is empty, long or has other characters than printable ones of ASCII.
func checkKey(keys []string) error {
	bad := len(keys) > 1 || keys[0] == "" || len(keys[0]) > longestKey
	for _, c := range []byte(keys[0]) {
		bad = bad || c < ' ' || c > '~'
	}
	if !bad {
		return nil
	}
	return &task.FieldError{Field: keyHeader, Value: keys[0], Reason: "not one key", Hint: fmt.Sprintf("1 to %d printable characters, such as a UUID", longestKey)}
}

// hashOf returns a hash of texts, none of which runs into the next.
func hashOf(texts ...string) string {
	h := sha256.New()
	for _, s := range texts {
		_, _ = io.WriteString(h, strconv.Itoa(len(s))+":"+s)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// answerOnce works on a request, and keeps its answer. The tasks get their IDs from id, which is that of the key with this request:
// when the answer is gone, another request with the key must not find the tasks of the first.
func answerOnce(claim admin.AnswerClaim, id string, next http.Handler, w http.ResponseWriter, r *http.Request) {
	k := &keep{ResponseWriter: w, role: identityOf(r.Context()).Role}
	defer func() { // also when the handler panics, and after the client has left
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), settleTime)
		defer cancel()
		_ = claim.Settle(ctx, k.answer()) // if it fails, the claim ends by itself
	}()
	ctx := context.WithValue(r.Context(), derivedKey{}, seed{hashOf(id, identityOf(r.Context()).salt), &k.passing})
	next.ServeHTTP(k, r.WithContext(ctx))
	k.done = true
}

// keep notes an answer while it is written.
type keep struct {
	http.ResponseWriter
	role   Role
	status int
	body   bytes.Buffer
	done   bool
	// passing says that something was refused for a reason that may pass, such as the limit of lanes.
	passing bool
}

// Unwrap lets a handler reach the connection.
func (k *keep) Unwrap() http.ResponseWriter { return k.ResponseWriter }

// WriteHeader notes the status.
func (k *keep) WriteHeader(status int) {
	if k.status == 0 {
		k.status = status
	}
	k.ResponseWriter.WriteHeader(status)
}

// Write notes the body, as far as it may be kept.
func (k *keep) Write(p []byte) (int, error) {
	if k.status == 0 {
		k.status = http.StatusOK
	}
	if k.body.Len() <= queue.MaxAnswer {
		k.body.Write(p)
	}
	return k.ResponseWriter.Write(p)
}

// kept is the first line of an answer that is kept. The body is the rest.
type kept struct {
	Status int               `json:"status"`
	Role   Role              `json:"role"` // of the sender that was answered: a lesser one might not see it
	Header map[string]string `json:"header,omitempty"`
}

// answer returns the answer to keep, or nothing: a request that failed, or was refused in part, may be tried again, and one whose answer
// is too large is worked on again.
func (k *keep) answer() []byte {
	if !k.done || k.passing || k.status < 200 || k.status > 299 {
		return nil
	}
	head := kept{Status: k.status, Role: k.role, Header: map[string]string{}}
	for _, name := range []string{"Content-Type", "Location", "ETag"} {
		if v := k.Header().Get(name); v != "" {
			head.Header[name] = v
		}
	}
	line, err := json.Marshal(head)
	if err != nil || len(line)+1+k.body.Len() > queue.MaxAnswer {
		return nil
	}
	return append(append(line, '\n'), k.body.Bytes()...)
}

// replay sends an answer that is kept.
func replay(w http.ResponseWriter, r *http.Request, answer []byte) {
	line, body, _ := bytes.Cut(answer, []byte("\n"))
	var head kept
	if err := json.Unmarshal(line, &head); err != nil || head.Status < 200 {
		problem(w, http.StatusInternalServerError, fmt.Errorf("the answer that is kept cannot be read: %w", err))
		return
	}
	if who := identityOf(r.Context()); !who.Role.May(head.Role) {
		problem(w, errLesser.status, errLesser)
		return
	}
	for name, value := range head.Header {
		w.Header().Set(name, value)
	}
	w.Header().Set(replayedHeader, "true")
	w.WriteHeader(head.Status)
	_, _ = w.Write(body)
}

type derivedKey struct{}

// seed is the source of the IDs of the tasks of one request. The token is in it: a sender that guesses the key of another one cannot
// take the IDs first, so that the tasks of the other one would count as added.
type seed struct {
	id      string
	passing *bool // see keep
}

// refusedForNow has the answer of a request not kept: a request that Redis refused in part may be sent again with the same key.
func refusedForNow(ctx context.Context) {
	if s, ok := ctx.Value(derivedKey{}).(seed); ok {
		*s.passing = true
	}
}

// taskID returns the ID of the task at an index of a request. It looks like any other.
func (s seed) taskID(i int) string {
	sum := sha256.Sum256([]byte(s.id + " " + strconv.Itoa(i)))
	return strings.ToLower(base32.HexEncoding.EncodeToString(sum[:])[:20])
}

// place returns an ID that lies where a task does, in a namespace that is split. Enqueue refuses a task that lies nowhere, with its index.
func (d derived) place(ctx context.Context, t *task.Task, id string) (string, error) {
	if split, ok := d.Tasks.(interface {
		Turn(ctx context.Context, t *task.Task, id string) (string, error)
	}); ok {
		if turned, err := split.Turn(ctx, t, id); !errors.Is(err, task.ErrInvalid) {
			return turned, err
		}
	}
	return id, nil
}

// derived adds the tasks of a request with an Idempotency-Key under IDs that come from the key. If an earlier try of the
// request was lost after it had added them, they count as added.
type derived struct{ admin.Tasks }

// Enqueue is that of [admin.Tasks].
func (d derived) Enqueue(ctx context.Context, list []*task.Task) ([]admin.Enqueued, error) {
	s, ok := ctx.Value(derivedKey{}).(seed)
	if !ok {
		return d.Tasks.Enqueue(ctx, list)
	}
	named := make([]bool, len(list))
	for i, t := range list {
		if named[i] = t.ID == ""; named[i] {
			id, err := d.place(ctx, t, s.taskID(i))
			if err != nil {
				return nil, err
			}
			t.ID = id
			if t.Keep == 0 && len(list) <= mostAnswered { // else its ID keeps it for a day
				t.Keep = retryTime
			}
		}
	}
	done, err := d.Tasks.Enqueue(ctx, list)
	for i := range done {
		if i < len(list) && named[i] && done[i].There() != nil && done[i].ID == list[i].ID { // it holds its ID, or its unique key, itself
			done[i].Err = nil
		}
		if done[i].Err != nil && done[i].There() == nil {
			refusedForNow(ctx)
		}
	}
	return done, err
}
