package store

// unmade wraps the error of a failed dial. While go-redis makes a connection, it takes the outermost layer off an error. For
// a [net.OpError] that layer holds the address. So unmade is one more layer, for go-redis to take.
type unmade struct{ error }

// Unwrap returns the error of the dial.
func (u unmade) Unwrap() error { return u.error }
