package queue

import "time"

// Clock maps the clock of Redis to the local monotonic one. It only decides when to look or how far ahead to push; what
// is due, Redis decides. The zero Clock believes the two are equal.
//
// It goes by the call that came back fastest: such a call says most exactly when Redis read its clock.
type Clock struct {
	asked time.Time
	round time.Duration // from asking to hearing; in between, Redis read there on its clock
	there time.Time
}

// drift is how far apart two clocks go, at most, a second: a fast call of long ago says less than a slower one of now.
const drift = 100 * time.Microsecond

// Set takes in what a call returned: when it was asked, when the answer was heard, and what Redis read in between.
func (c *Clock) Set(asked, heard, redis time.Time) {
	age := asked.Sub(c.asked)
	round := c.round + time.Duration(age.Seconds()*float64(drift))
	// What the two say of the difference between the clocks must overlap, or one clock was set.
	least, most := redis.Sub(heard), redis.Sub(asked)
	was := c.there.Sub(c.asked)
	set := c.there.IsZero() || most < was-round || least > was+round-c.round
	if set || heard.Sub(asked) <= round {
		c.asked, c.round, c.there = asked, heard.Sub(asked), redis
	}
}

// Local is when to ask, here, so that Redis reads a moment on its clock, or soon after.
func (c *Clock) Local(there time.Time) time.Time {
	if c.there.IsZero() {
		return time.Now().Add(time.Until(there))
	}
	return c.asked.Add(there.Sub(c.there))
}

// Now is about the present of Redis.
func (c *Clock) Now() time.Time {
	if c.there.IsZero() {
		return time.Now().UTC()
	}
	return c.there.Add(time.Since(c.asked) - c.round/2)
}
