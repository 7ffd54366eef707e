// Package archiver moves what happens in a namespace from Redis into an archive: what became of every run and slot, the events,
// and what schedules said. One instance does it, the leader, beside its other work and never in the way of it.
//
// It goes on from the position that the archive keeps and moves in the same transaction as the rows: so each entry is archived
// once, though instances change, answers are lost, and two instances believe for a moment that they lead. While the database is
// away, Redis keeps the entries, up to [queue.Caps].Buffer. Entries that Redis drops before they are archived are counted,
// reported, and noted in the archive.
package archiver
