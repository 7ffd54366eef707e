package handlers

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// parseRetryAfter reads the value of Retry-After (RFC 9110, 10.2.3). It ignores a value that is neither seconds nor a date.
func parseRetryAfter(s string, now time.Time) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if s != "" && strings.Trim(s, "0123456789") == "" {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			n = 1<<31 - 1 // too many digits: a long time
		}
		return time.Duration(n) * time.Second, true
	}
	at, err := http.ParseTime(s)
	if err != nil {
		return 0, false
	}
	return at.Sub(now), true
}
