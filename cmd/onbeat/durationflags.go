package main

import (
	"strconv"
	"time"

	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/schedule"
)

// duration is a flag that [schedule.ParseDuration] reads.
type duration time.Duration

// UnmarshalText reads the value of the flag.
func (d *duration) UnmarshalText(b []byte) error { return durationFlag(d, b, schedule.ParseDuration) }

// interval is a flag that [schedule.ParseEvery] reads. It is not zero.
type interval time.Duration

// UnmarshalText reads the value of the flag.
func (d *interval) UnmarshalText(b []byte) error { return durationFlag(d, b, schedule.ParseEvery) }

func durationFlag[D ~int64](d *D, b []byte, parse func(string) (time.Duration, error)) error {
	v, err := parse(string(b))
	if e := field.Of(err); e != nil {
		return &usageError{strconv.Quote(e.Value) + ": " + e.Reason, e.Hint}
	}
	*d = D(v)
	return nil
}
