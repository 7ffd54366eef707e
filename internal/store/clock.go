package store

import "time"

// Clock maps the clock of Redis to the local monotonic clock. Callers use it only to decide when to look, or how far ahead
// to push; Redis decides what is due. The zero Clock assumes that both clocks are equal.
//
// Clock uses the call that came back fastest, because it shows most exactly when Redis read its clock.
type Clock struct {
	asked time.Time
	round time.Duration // from asking to hearing; in between, Redis read there on its clock
	there time.Time
}

// drift is the most that two clocks drift apart in a second. Because of it, a fast call of long ago says less than a slower
// call of now.
const drift = 100 * time.Microsecond

// Set adds a call: when it was sent, when the reply came, and the time that Redis read in between.
func (c *Clock) Set(asked, heard, redis time.Time) {
	took, age := heard.Sub(asked), asked.Sub(c.asked)
	round := c.round + time.Duration(age.Seconds()*float64(drift))
	// off is how far this reading is from the one that the kept call predicts. If both calls together cannot explain it,
	// one of the clocks was set, or stopped.
	off := redis.Sub(c.there) - age
	set := c.there.IsZero() || off < -round || off > took+round-c.round
	if set || took <= round {
		c.asked, c.round, c.there = asked, took, redis
	}
}

// Local returns the local time at which the clock of Redis shows the given time, or a little more.
func (c *Clock) Local(there time.Time) time.Time {
	if c.there.IsZero() {
		return time.Now().Add(time.Until(there))
	}
	return c.asked.Add(there.Sub(c.there))
}

// Now returns about the present time of Redis.
func (c *Clock) Now() time.Time {
	if c.there.IsZero() {
		return time.Now().UTC()
	}
	return c.there.Add(time.Since(c.asked) - c.round/2)
}
