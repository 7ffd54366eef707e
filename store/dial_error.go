package store

// unmade is why a connection could not be made. go-redis takes the outermost error off what fails while it makes a
// connection, and of a [net.OpError] that is the address: so it is given one more to take.
type unmade struct{ error }

// Unwrap returns what the dial failed with.
func (u unmade) Unwrap() error { return u.error }
