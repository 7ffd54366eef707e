package task

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/secret"
)

// ErrRecord is returned by [Decode] for bytes that are not a record, or a record of a format that this release cannot read.
var ErrRecord = errors.New("unreadable task record")

// The format of a record, versions 1 and 2. Version 2 is a task whose payload is encrypted: a release that does not know of that
// must not run it without its payload, and leaves it to others.
//
//	'1' or '2'                the version
//	'.'                       no key, or
//	'k' LIMIT ',' POLICY LEN ':' KEY   for a task with a key: text, because cycle.lua reads it
//	fields                    each a uvarint tag (number<<1 | 1 if bytes follow), then a uvarint value,
//	                          or a uvarint length and that many bytes
//
// A release can read the records of the releases next to it: it skips unknown fields, and keeps them when it rewrites the
// record. So a field's number is never reused, and a new meaning gets a new number.
const (
	recordVersion = '1'
	recordSealed  = '2' // only if the payload is encrypted
	recordPlain   = '.'
	recordKeyed   = 'k'
)

const (
	fType        = 1
	fPayload     = 2
	fQueue       = 3
	fPriority    = 4 // Low is 1, High is 2
	fCreated     = 5 // unix ms; left out if the ID gives it
	fDue         = 6 // unix ms; only when the score no longer gives it
	fSchedule    = 7
	fSlot        = 8
	fAttempts    = 9
	fMaxAttempts = 10
	fTimeout     = 11 // ms
	fBackoff     = 12 // ms
	fBackoffCap  = 13 // ms
	fKeep        = 14 // ms
	fTrace       = 15
	fFailure     = 16 // repeated: at, attempt, instance length, instance, text
	fTraceState  = 17
	fSecret      = 18 // repeated: a path of the payload
	fSealed      = 19 // in place of fPayload: see Sealed
)

// Encode appends the record of t to b. It keeps the fields of a newer release that t was decoded from.
func Encode(b []byte, t *Task) []byte {
	if t.Sealed != nil {
		b = appendKey(append(b, recordSealed), t)
		b = t.Sealed.Append(appendHead(b, fSealed, t.Sealed.Len()))
	} else {
		b = appendKey(append(b, recordVersion), t)
	}
	b = appendString(b, fType, t.Type)
	if t.QueueName() != DefaultQueue {
		b = appendString(b, fQueue, t.Queue)
	}
	switch t.Priority {
	case Low:
		b = appendUint(b, fPriority, 1)
	case High:
		b = appendUint(b, fPriority, 2)
	}
	if made, ok := idTime(t.ID); !ok || !made.Equal(t.Created) { // else the ID gives it
		b = appendTime(b, fCreated, t.Created)
	}
	b = appendTime(b, fDue, t.Due)
	b = appendString(b, fSchedule, t.Schedule)
	b = appendTime(b, fSlot, t.Slot)
	b = appendUint(b, fAttempts, uint64(max(t.Attempts, 0)))
	b = appendUint(b, fMaxAttempts, uint64(max(t.MaxAttempts, 0)))
	b = appendDuration(b, fTimeout, t.Timeout)
	b = appendDuration(b, fBackoff, t.Backoff.Base)
	b = appendDuration(b, fBackoffCap, t.Backoff.Cap)
	b = appendDuration(b, fKeep, t.Keep)
	b = appendString(b, fTrace, t.Trace)
	b = appendString(b, fTraceState, t.TraceState)
	for _, path := range t.Secret {
		b = appendString(b, fSecret, path)
	}
	for _, f := range t.Failures {
		b = appendFailure(b, f)
	}
	b = append(b, t.unknown...)
	if len(t.Payload) > 0 && t.Sealed == nil {
		b = appendHead(b, fPayload, len(t.Payload))
		b = append(b, t.Payload...)
	}
	return b
}

func appendKey(b []byte, t *Task) []byte {
	if t.Key == "" {
		return append(b, recordPlain)
	}
	b = append(b, recordKeyed)
	b = strconv.AppendInt(b, int64(max(t.KeyLimit, 1)), 10)
	b = append(b, ',')
	if t.Overlap == Wait {
		b = append(b, 'w')
	} else {
		b = append(b, byte(t.Overlap))
	}
	b = strconv.AppendInt(b, int64(len(t.Key)), 10)
	b = append(b, ':')
	return append(b, t.Key...)
}

func appendHead(b []byte, field, n int) []byte {
	b = binary.AppendUvarint(b, uint64(field)<<1|1)
	return binary.AppendUvarint(b, uint64(n))
}

func appendString(b []byte, field int, s string) []byte {
	if s == "" {
		return b
	}
	return append(appendHead(b, field, len(s)), s...)
}

func appendUint(b []byte, field int, v uint64) []byte {
	if v == 0 {
		return b
	}
	b = binary.AppendUvarint(b, uint64(field)<<1)
	return binary.AppendUvarint(b, v)
}

// appendTime leaves out only zero times: 1970-01-01 itself is the value 1, shifted by one.
func appendTime(b []byte, field int, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return appendUint(b, field, uint64(max(t.UnixMilli(), 0))+1)
}

// appendDuration writes whole milliseconds, rounded up so that no duration becomes "not set"; a negative one means "never".
func appendDuration(b []byte, field int, d time.Duration) []byte {
	if d < 0 {
		return appendUint(b, field, 1)
	}
	if d == 0 {
		return b
	}
	ms := (d + time.Millisecond - 1) / time.Millisecond
	return appendUint(b, field, uint64(ms)+1)
}

func appendFailure(b []byte, f Failure) []byte {
	var in []byte
	in = binary.AppendUvarint(in, uint64(max(f.At.UnixMilli(), 0)))
	in = binary.AppendUvarint(in, uint64(max(f.Attempt, 0)))
	in = binary.AppendUvarint(in, uint64(len(f.Instance)))
	in = append(in, f.Instance...)
	in = append(in, f.Error...)
	b = appendHead(b, fFailure, len(in))
	return append(b, in...)
}

// Decode reads a record into t. It overwrites all of t except ID. Strings share the memory of rec; the payload is a copy.
// The error is [ErrRecord].
func Decode(rec string, t *Task) error {
	*t = Task{ID: t.ID}
	if len(rec) < 2 || rec[0] != recordVersion && rec[0] != recordSealed {
		return fmt.Errorf("%w: format %q (a much newer release wrote it, or a program other than onbeat)", ErrRecord, rec[:min(1, len(rec))])
	}
	rest, err := decodeKey(rec[1:], t)
	for err == nil && rest != "" {
		rest, err = decodeField(rest, t)
	}
	if err == nil && t.Type == "" {
		err = errors.New("it has no type")
	}
	if err == nil && rec[0] == recordSealed && t.Sealed == nil {
		err = errors.New("its encrypted payload is damaged")
	}
	if made, ok := idTime(t.ID); ok && t.Created.IsZero() {
		t.Created = made
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return nil
}

var errTruncated = errors.New("it is cut short")

func decodeKey(s string, t *Task) (string, error) {
	if s[0] == recordPlain {
		return s[1:], nil
	}
	if s[0] != recordKeyed {
		return "", fmt.Errorf("unknown kind %q", s[:1])
	}
	comma, colon := strings.IndexByte(s, ','), strings.IndexByte(s, ':')
	if comma < 2 || colon < comma+3 {
		return "", errTruncated
	}
	limit, err1 := strconv.Atoi(s[1:comma])
	n, err2 := strconv.Atoi(s[comma+2 : colon])
	if err1 != nil || err2 != nil || limit < 1 || n < 1 || n > len(s)-colon-1 {
		return "", errTruncated
	}
	t.KeyLimit, t.Key = limit, s[colon+1:colon+1+n]
	if c := s[comma+1]; c != 'w' {
		t.Overlap = Overlap(c)
	}
	return s[colon+1+n:], nil
}

func decodeField(s string, t *Task) (string, error) {
	start := s
	tag, n := uvarint(s)
	if n <= 0 {
		return "", errTruncated
	}
	s = s[n:]
	v, n := uvarint(s)
	if n <= 0 {
		return "", errTruncated
	}
	s = s[n:]
	if tag&1 == 0 {
		if !t.setUint(tag>>1, v) {
			t.unknown = append(t.unknown, start[:len(start)-len(s)]...)
		}
		return s, nil
	}
	if v > uint64(len(s)) {
		return "", errTruncated
	}
	if !t.setBytes(tag>>1, s[:v]) {
		t.unknown = append(t.unknown, start[:len(start)-len(s)+int(v)]...)
	}
	return s[v:], nil
}

// uvarint is binary.Uvarint for a string, so that decoding copies nothing.
func uvarint(s string) (uint64, int) {
	var v uint64
	for i := 0; i < len(s) && i < binary.MaxVarintLen64; i++ {
		c := s[i]
		if c < 0x80 {
			if i == binary.MaxVarintLen64-1 && c > 1 {
				return 0, -1
			}
			return v | uint64(c)<<(7*i), i + 1
		}
		v |= uint64(c&0x7f) << (7 * i)
	}
	return 0, 0
}

func (t *Task) setUint(field, v uint64) bool {
	switch field {
	case fPriority:
		t.Priority = map[uint64]Priority{1: Low, 2: High}[v]
	case fCreated:
		t.Created = decodeTime(v)
	case fDue:
		t.Due = decodeTime(v)
	case fSlot:
		t.Slot = decodeTime(v)
	case fAttempts:
		t.Attempts = int(min(v, MaxAttemptsLimit*2))
	case fMaxAttempts:
		t.MaxAttempts = int(min(v, MaxAttemptsLimit))
	case fTimeout:
		t.Timeout = decodeDuration(v)
	case fBackoff:
		t.Backoff.Base = decodeDuration(v)
	case fBackoffCap:
		t.Backoff.Cap = decodeDuration(v)
	case fKeep:
		t.Keep = decodeDuration(v)
	default:
		return false
	}
	return true
}

func (t *Task) setBytes(field uint64, s string) bool {
	switch field {
	case fType:
		t.Type = s
	case fPayload:
		t.Payload = []byte(s) // a copy: it outlives its batch, and the handler may change it
	case fSealed:
		t.Sealed = ParseSealed(s)
		return t.Sealed != nil
	case fSecret:
		if len(t.Secret) < secret.MaxPaths { // a corrupt record may hold any number
			t.Secret = append(t.Secret, s)
		}
	case fQueue:
		t.Queue = s
	case fSchedule:
		t.Schedule = s
	case fTrace:
		t.Trace = s
	case fTraceState:
		t.TraceState = s
	case fFailure:
		f, ok := decodeFailure(s)
		if !ok {
			return false
		}
		if n := len(t.Failures); n >= MaxFailures { // in place: a corrupt record may hold any number
			t.Failures = t.Failures[:copy(t.Failures, t.Failures[n-MaxFailures+1:])]
		}
		t.Failures = append(t.Failures, f)
	default:
		return false
	}
	return true
}

func decodeTime(v uint64) time.Time {
	if v == 0 || v-1 > uint64(maxDue.UnixMilli()) {
		return time.Time{}
	}
	return time.UnixMilli(int64(v - 1)).UTC()
}

func decodeDuration(v uint64) time.Duration {
	switch {
	case v == 0:
		return 0
	case v == 1:
		return -1
	}
	const most = uint64(1<<63-1) / uint64(time.Millisecond)
	return time.Duration(min(v-1, most)) * time.Millisecond
}

func decodeFailure(s string) (f Failure, ok bool) {
	at, n := uvarint(s)
	if n <= 0 {
		return f, false
	}
	s = s[n:]
	attempt, n := uvarint(s)
	if n <= 0 {
		return f, false
	}
	s = s[n:]
	l, n := uvarint(s)
	if n <= 0 || l > uint64(len(s)-n) {
		return f, false
	}
	s = s[n:]
	return Failure{
		At: decodeTime(at + 1), Attempt: int(min(attempt, MaxAttemptsLimit*2)),
		Instance: s[:l], Error: s[l:],
	}, true
}
