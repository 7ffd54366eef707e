// Package simulation runs whole dispatchers in virtual time and judges what they did. It has nothing but tests.
//
// The model checks every order of script calls; it does not look inside a process, at how soon anything happens, or at
// settings in combination. The simulation does. One plan (plan_test.go) says which instances run with which settings,
// which schedules and tasks there are, and which faults and operations happen when. A seed draws a plan
// (draw_test.go). A plan runs in one bubble of testing/synctest: real [onbeat.Dispatcher]s, real scripts on the
// in-process Redis (redis_test.go), and connections that lose, delay and hold what is sent (link_test.go).
//
// The judge (judge_test.go and its neighbours) knows what was asked for, which faults there were, and what the handlers
// recorded. From that it says what should have happened, and by when. It does not read what onbeat says of itself, except
// to compare it at the end. Some handlers have an effect in a database, within [handlers.Once]: then the judge counts those too
// (effects_test.go).
//
//	go test ./simulation                         every kept plan, and new seeds for a while
//	go test ./simulation -seed 42 -v             one seed
//	go test ./simulation -seed 1 -for 8h         seeds from 1 on, for eight hours
//	go test ./simulation -plan testdata/plans/x.json -v
//
// A seed that fails is shrunk, and printed as a plan. Keep it in testdata/plans: every plan there runs each time.
package simulation
