package task

// Term names a leader's term. Redis takes from a leader only what it does in its own term.
type Term struct {
	// Instance leads in its generation Gen: it gets a new one each time it registers.
	Instance string
	Gen      int64
	// Epoch rises with each leader.
	Epoch int64
}
