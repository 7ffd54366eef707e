// Package conformance puts onbeat on trial against a user's own Redis: real processes of the program, in scratch
// namespaces, under rollouts and faults, judged by what a receiver saw and by what the audit says about it.
//
// [Run] plays all scenarios. [Play] plays one that the caller brings, as onbeat demo does. Both play on the stage of package
// trial, and its judge judges both. A scenario passes only if no promise broke and the receiver and the audit agree. For what
// they cannot see, the suite acts itself: in the name of a leader whose term is over it pushes slots, and Redis must refuse.
// (Even an accepted push would run no slot twice, because a schedule that has moved on is left alone too.)
//
// The suite does no harm to other programs on that Redis: it flushes nothing, changes no setting, and disturbs no
// connection except its own. It cannot try the death of Redis itself, because the Redis is not its own to kill.
package conformance
