// Package differential compares package schedule with two other evaluators of cron expressions. It has only tests.
//
// Every difference has a name and a count. Where possible, the tests derive the other evaluator's answer from ours by
// changing that one thing.
package differential
