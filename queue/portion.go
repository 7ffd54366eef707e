package queue

// portion is how many entries of a hash are asked for at a time: more as long as they are small, fewer when they are
// large. What does not come through a slow connection in the time of one call is so read by several.
type portion int64

// After one of fewer bytes than leastBytes the next is twice as large, after one of more than mostBytes half as large.
const (
	firstEntries = portion(64)
	leastBytes   = 128 << 10
	mostBytes    = 1 << 20
)

// took takes in what came of one.
func (p *portion) took(entries []string) {
	size := 0
	for _, s := range entries {
		size += len(s)
	}
	switch {
	case size < leastBytes:
		*p = min(2**p, MaxBatch)
	case size > mostBytes:
		*p = max(*p/2, 1)
	}
}
