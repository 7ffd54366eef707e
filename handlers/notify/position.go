package notify

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// position is up to where the leaders have followed, for the targets of one window.
type position struct {
	UpTo int64 `json:"up_to"` // the end of the last window, in Unix milliseconds
	// Died is from when on the dead are to be read, if that is before UpTo, because the clock went back.
	Died int64 `json:"died,omitempty"`
	// The last event that was read, the last entry of the history, and the last run of a task that no schedule made; "": there
	// was none.
	Event string `json:"event"`
	Entry string `json:"entry"`
	Run   string `json:"run"`
}

// diedFrom is from when on the dead are to be read.
func (p position) diedFrom() int64 { return cmp.Or(p.Died, p.UpTo) }

func (p position) encode() string {
	b, _ := json.Marshal(p) // texts and a number always encode
	return string(b)
}

// parsePosition reads what encode wrote.
func parsePosition(text string) (p position, ok bool) {
	err := json.Unmarshal([]byte(text), &p)
	return p, err == nil && p.UpTo > 0 && goodID(p.Event) && goodID(p.Entry) && goodID(p.Run)
}

func goodID(id string) bool {
	if id == "" {
		return true
	}
	ms, seq, ok := strings.Cut(id, "-")
	_, err1 := strconv.ParseUint(ms, 10, 64)
	_, err2 := strconv.ParseUint(seq, 10, 64)
	return ok && err1 == nil && err2 == nil
}

// compareIDs orders the IDs of a stream. "" comes before all.
func compareIDs(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(a), len(b))
	}
	ms1, seq1 := splitID(a)
	ms2, seq2 := splitID(b)
	return cmp.Or(cmp.Compare(ms1, ms2), cmp.Compare(seq1, seq2))
}

func splitID(id string) (ms, seq uint64) {
	head, tail, _ := strings.Cut(id, "-")
	ms, _ = strconv.ParseUint(head, 10, 64)
	seq, _ = strconv.ParseUint(tail, 10, 64)
	return ms, seq
}

// aligned is the last multiple of the window up to a moment.
func aligned(at time.Time, window time.Duration) time.Time {
	ms := window.Milliseconds()
	return time.UnixMilli(at.UnixMilli() / ms * ms).UTC()
}
