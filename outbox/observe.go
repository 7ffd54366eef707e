package outbox

// The results of a row, as an [Observer] is told.
const (
	// Moved: its task is in Redis.
	Moved = "moved"
	// Duplicate: the task's ID or unique key is taken, so the task was dropped.
	Duplicate = "duplicate"
	// Refused: the task cannot be enqueued. Its row stays in the table, with the error.
	Refused = "refused"
	// Stuck: the row stays as it is, and is passed over for a minute. The database neither removes it nor notes why its task is refused,
	// or Redis does not take its task for now.
	Stuck = "stuck"
)

// Observer is told what a mover does. Its methods must not block.
type Observer interface {
	// OutboxMoved is told how many rows came to a result, when that is committed.
	OutboxMoved(result string, rows int)
	// OutboxWaiting is told how many rows wait, each time that the mover looks; of more than 10,000 it is told 10,000.
	OutboxWaiting(rows int)
}
