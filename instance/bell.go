package instance

// Bell wakes one goroutine that receives from it. Rings that come while none receives count as one.
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
