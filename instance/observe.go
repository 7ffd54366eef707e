package instance

// Observer learns of the leader and of this instance's terms. Its methods may be called from several goroutines at once. They
// must not block, because the lease waits for them.
type Observer interface {
	// Heard is called for each reply that renews the lease. The view names the leader.
	Heard(v View)
	// Leads is called with the epoch when a term of this instance begins, and with 0 when it ends.
	Leads(epoch int64)
	// LeaderSuspected is called when this instance, as the monitor, found a leader without a sign of life. Another instance
	// then leads.
	LeaderSuspected()
}
