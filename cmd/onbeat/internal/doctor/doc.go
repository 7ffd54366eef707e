// Package doctor checks a namespace, and the Redis that holds it, for what goes wrong in production: refused writes, a policy
// that drops keys, missing rights, a lease that is shorter than a failover, work that no instance handles. Each check reports
// what it found and what to do about it.
package doctor
