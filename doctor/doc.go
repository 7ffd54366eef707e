// Package doctor checks a namespace, and the Redis that it is on, for what goes wrong in production: refused writes, a policy
// that drops keys, missing rights, a lease that is shorter than a failover, work that no instance handles. Each check says
// what it found, and what helps.
package doctor
