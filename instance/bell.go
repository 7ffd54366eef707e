package instance

// Bell wakes one waiter. Rings while nobody waits are one ring.
type Bell chan struct{}

// NewBell returns a silent bell.
func NewBell() Bell { return make(Bell, 1) }

// Ring never blocks.
func (b Bell) Ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}
