package telemetry

import "sync"

// other is the label of what shares a series, because there is too much to give each its own.
const other = "other"

// bounded gives the first names that it sees a label of their own, and all others one together.
type bounded struct {
	most int // negative: no bound

	mu    sync.RWMutex
	names map[string]bool
}

func newBounded(most int) *bounded { return &bounded{most: most, names: map[string]bool{}} }

func (b *bounded) label(name string) string {
	b.mu.RLock()
	known := b.names[name]
	b.mu.RUnlock()
	if known {
		return name
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.most >= 0 && len(b.names) >= b.most && !b.names[name] {
		return other
	}
	b.names[name] = true
	return name
}
