package task

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"strings"
	"time"
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// NewID returns a new ID of 20 letters and digits: 8 of milliseconds, so that IDs sort by the time they were made, and 12
// random ones (71 bits).
//
// Why not a UUID: an ID is stored twice for every pending task, and in Redis 20 bytes fall into an allocation class that is
// 16 bytes smaller than that of a UUID's 36.
func NewID(now time.Time) string {
	var b [20]byte
	ms := uint64(now.UnixMilli())
	for i := 7; i >= 0; i-- {
		b[i] = base62[ms%62]
		ms /= 62
	}
	var r [16]byte
	_, _ = rand.Read(r[:]) // never fails; see crypto/rand
	hi, lo := binary.LittleEndian.Uint64(r[:8]), binary.LittleEndian.Uint64(r[8:])
	for i := 8; i < 14; i++ {
		b[i] = base62[hi%62]
		hi /= 62
	}
	for i := 14; i < 20; i++ {
		b[i] = base62[lo%62]
		lo /= 62
	}
	return string(b[:])
}

// idTime returns when [NewID] made an ID, or false for an ID that NewID did not or could not have made.
func idTime(id string) (time.Time, bool) {
	if len(id) != 20 {
		return time.Time{}, false
	}
	var ms int64
	for i := range 8 {
		d := strings.IndexByte(base62, id[i])
		if d < 0 {
			return time.Time{}, false
		}
		ms = ms*62 + int64(d)
	}
	return time.UnixMilli(ms).UTC(), ms <= maxDue.UnixMilli()
}

// SlotID returns the ID of the task of one slot of a schedule: name@milliseconds. It is the same in every process, so a
// slot that is pushed twice is one task.
func SlotID(schedule string, slot time.Time) string {
	return schedule + "@" + strconv.FormatInt(slot.UnixMilli(), 10)
}

// ParseSlotID splits an ID that [SlotID] made. It returns false for an ID of any other form. A caller may have chosen an ID
// of this form, so trust the result only for a task with a schedule.
func ParseSlotID(id string) (schedule string, slot time.Time, ok bool) {
	i := strings.LastIndexByte(id, '@')
	if i <= 0 {
		return "", time.Time{}, false
	}
	ms, err := strconv.ParseInt(id[i+1:], 10, 64)
	if err != nil || strconv.FormatInt(ms, 10) != id[i+1:] || CheckName("schedule", id[:i]) != nil {
		return "", time.Time{}, false
	}
	return id[:i], time.UnixMilli(ms).UTC(), true
}
