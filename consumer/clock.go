package consumer

import "time"

// clock maps the clock of Redis to the local monotonic one, from the last call: the reply was made about half way
// between asking and hearing. It only decides when to look; whether a task is due, Redis decides.
type clock struct {
	here  time.Time
	there time.Time
}

func (c *clock) set(asked, heard, redis time.Time) {
	c.here, c.there = asked.Add(heard.Sub(asked)/2), redis
}

// local is when a moment of Redis comes, here.
func (c *clock) local(there time.Time) time.Time {
	if c.there.IsZero() {
		return time.Now()
	}
	return c.here.Add(there.Sub(c.there))
}
