package queue

// portion is how many entries of a hash the next call asks for: more while entries are small, fewer when they are large.
// So a hash that is too large for one call over a slow connection is read by several.
type portion int64

// After a reply under leastBytes the next portion is twice as large; after one over mostBytes it is half as large.
const (
	firstEntries = portion(64)
	firstScan    = portion(8) // of the records of all tasks, of which each may be large
	leastBytes   = 128 << 10
	mostBytes    = 1 << 20
)

// took adapts the portion to the size of a reply.
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
