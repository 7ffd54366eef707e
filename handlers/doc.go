// Package handlers runs tasks: a [TaskHandler] does the work of one task, and a [Mux] gives each task to the
// handler of its type.
//
// # A tour
//
//	mux := handlers.NewMux()
//	mux.Use(handlers.Log(log), handlers.Recover())
//	err := mux.Handle("invoice.send", handlers.Typed(func(ctx context.Context, inv Invoice) error {
//		t := handlers.FromContext(ctx) // its ID, slot, attempt and fence
//		return bank.Send(ctx, inv, t.ID)
//	}))
//
// [Typed] decodes the payload, strictly unless it is [Lenient]. [Func] takes the task as it is. [HTTP], [Exec], [Sleep] and [Echo] are ready to
// use, and [Builtin] is the set that the program serves.
//
// The result of a handler decides the next step. After nil, the task is done. After an error, it is retried after the
// task's backoff; [RetryAfter] sets the delay, and [Dead] allows no retry. Within [Recover], a panic is an error too, with
// its stack.
//
// To register a handler that is [Scheduled] is to schedule it. A handler that is a [PayloadChecker] refuses an invalid
// payload when it comes in. Middleware made with [Wrap] leaves both visible to [As].
//
// # Runs are repeated
//
// Delivery is at least once: a run that was lost with its process, or that outlived its lease, is repeated. To make an
// effect exactly once, key it by the task's ID (one effect a task), or guard it by the largest Fence seen (a run that was
// thought lost and still goes on is refused). For an effect in PostgreSQL or SQLite, [Once] does that: in the transaction of
// the effect, with a row that only one run can add.
//
// # What not to use
//
//   - A goroutine that outlives Handle: nothing waits for it when the process drains, and its failure is not recorded.
//   - [context.Background] in place of ctx: a lost lease or a cancelled task no longer stops the work.
//   - Dead for an error that a retry may fix, such as a refused connection: only a user can retry it by hand then.
//   - A sleep in the handler to space attempts: it holds a worker. Return [RetryAfter].
//   - [Echo] where payloads hold secrets, and [Exec] where callers that enqueue may not run programs on the machine.
package handlers
