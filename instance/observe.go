package instance

// Observer is told what an instance hears of the others. Its methods may be called from several goroutines at once. They must
// not block, because the lease waits for them.
type Observer interface {
	// Heard is told of each answer that renews the lease, and says who leads.
	Heard(v View)
	// Leads is told the epoch of each term of this instance when the term begins, and 0 when it ends.
	Leads(epoch int64)
	// LeaderSuspected is told that this instance, as the monitor, found a leader without a sign of life: another one leads.
	LeaderSuspected()
}
