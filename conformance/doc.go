// Package conformance puts onbeat on trial against somebody's own Redis: real processes of the program, in scratch
// namespaces, under rollouts and faults, judged by what a receiver saw and by what the audit says of it.
//
// [Run] plays all scenarios. [Play] plays one that the caller brings: onbeat demo is such a play. Both are judged by the
// same judge, which is pure: it holds the evidence against the promises. The two witnesses are independent: the receiver
// knows nothing but the requests that reached it, the audit reads nothing but the history in Redis. A scenario is fine
// only if no promise broke and both agree. What they cannot see is asked for: in the name of a leader whose term is over
// the suite pushes slots, and must be refused. (None would run twice for it, as a schedule that has moved is left alone
// too.)
//
// It is harmless to whatever else lives on that Redis: it flushes nothing, changes no setting, and disturbs no
// connection but its own. What it cannot try is the death of Redis itself, because that is not its to kill.
package conformance
