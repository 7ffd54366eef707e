package queue

import "time"

// Clock maps the clock of Redis to the local monotonic one, from the last call: the reply was made about half way
// between asking and hearing. It only decides when to look or how far ahead to push; what is due, Redis decides. The
// zero Clock believes the two are equal.
type Clock struct {
	here  time.Time
	there time.Time
}

// Set takes in what a call returned.
func (c *Clock) Set(asked, heard, redis time.Time) {
	c.here, c.there = asked.Add(heard.Sub(asked)/2), redis
}

// Local is when a moment of Redis comes, here.
func (c *Clock) Local(there time.Time) time.Time {
	if c.there.IsZero() {
		return time.Now().Add(time.Until(there))
	}
	return c.here.Add(there.Sub(c.there))
}

// Now is about the present of Redis.
func (c *Clock) Now() time.Time {
	if c.there.IsZero() {
		return time.Now().UTC()
	}
	return c.there.Add(time.Since(c.here))
}
