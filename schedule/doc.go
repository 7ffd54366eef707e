// Package schedule says when: it turns a [Rule], every or cron, into the times on
// its grid. It is arithmetic only, and does nothing by itself.
package schedule
