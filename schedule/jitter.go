package schedule

import (
	"math/bits"
	"time"
)

// JitterFor returns when the slot of the schedule called name comes due: the slot plus a delay in [0, Jitter), in whole
// milliseconds. The delay depends only on name, slot and Jitter, so every process and every release computes the same
// delay. Delays are spread evenly, both over the slots of a schedule and over the schedules of a slot. Nothing comes due after the last
// instant at which a slot may lie.
func (r Rule) JitterFor(name string, slot time.Time) time.Time {
	span := r.Jitter.Milliseconds()
	if span <= 0 {
		return slot
	}
	// The high word of hash × span is uniform in [0, span), without the bias and the division of a modulo.
	delay, _ := bits.Mul64(jitterHash(name, uint64(slot.UnixMilli())), uint64(span))
	due := slot.Add(time.Duration(delay) * time.Millisecond)
	if due.UnixMilli() > maxMilli {
		return asTime(maxMilli)
	}
	return due
}

// jitterHash is FNV-1a over the name, a zero byte and the slot's eight bytes, little end first, then SplitMix64's finisher:
// FNV alone leaves the high bits, which count here, nearly the same for neighbouring slots. Any change here moves every
// jittered task of every running schedule.
func jitterHash(name string, slot uint64) uint64 {
	const prime = 1099511628211
	h := uint64(14695981039346656037)
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	h *= prime
	for range 8 {
		h = (h ^ slot&0xff) * prime
		slot >>= 8
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
