// Package differential holds package schedule against two other evaluators of cron expressions. It has nothing but tests.
//
// Where they differ, the difference has a name and a count, and wherever it can be, the other's answer is derived from ours by
// changing that one thing.
package differential
