// Package schedule says when. It computes the times on the grid of a [Rule] by arithmetic alone: it starts nothing, waits
// for nothing, and reads no clock.
//
// # Tour
//
// A rule is either an interval or a cron expression:
//
//	schedule.Every(time.Second)
//	schedule.Cron("0 2 * * *", seoul)
//
// [Rule.Validate] says in one line what is invalid. [Rule.FirstAnchor] chooses the anchor when the rule is first applied,
// and [Rule.Grid] binds the rule to it. The [Grid] then answers for any instant: [Grid.Next], [Grid.Prev], [Grid.Between],
// [Grid.Count]. A Grid keeps no position, so every process that has the rule and the anchor computes the same slots,
// whenever the process started.
//
// [Rule.JitterFor] delays a slot by an amount that is also the same everywhere, [Rule.Explain] says what daylight saving
// did to a slot, and [Describe] puts a rule into words. This package only carries and checks Missed, CatchUp, Overlap and
// MaxRuns; the scheduler acts on them.
//
// All times are in whole milliseconds, in UTC, from 1970 to 9999-12-30.
//
// # Intervals
//
// Slot k of an every rule is the anchor plus k intervals of elapsed time, for k from 0. It does not drift and ignores
// daylight saving: every 1d is every 24 hours. For a time of day, use cron.
//
// # Cron expressions
//
// An expression has five fields, or six with seconds first:
//
//	second        0-59
//	minute        0-59
//	hour          0-23
//	day of month  1-31   also ? L L-3 LW 15W
//	month         1-12   or JAN-DEC
//	day of week   0-7    or SUN-SAT, 0 and 7 are Sunday; also ? 5L MON#2
//
// A field is a list, separated by commas, of * (all), a value, a range 1-5, and any of these with a step: */15, 9-17/2, and
// 5/10, which is 5 to the end by 10. Names and letters may be in either case. A step is at most the size of its field, and
// starts again with the next hour, day or month.
//
//   - L is the last day of the month, L-3 the third before it, LW the last working day, 15W the working day (Monday to
//     Friday) nearest to the 15th in the same month. A month without such a day has no slot.
//   - 5L is the last Friday of the month, MON#2 the second Monday.
//   - A range must not run backwards, so that a slip such as 9-5 does not become a night shift; the error shows the list to
//     write instead. Only Sunday may end a range that begins later in the week: FRI-SUN.
//   - ? means * and stands alone, in either day field.
//   - @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly mean what they say, at the first second. @every
//     is refused: use an every rule. A prefix TZ= or CRON_TZ= is refused: use [Rule.Timezone].
//
// When both day fields are restricted, a day matches if either does: "0 0 13 * FRI" is each 13th and each Friday. A field
// counts as restricted unless its first character is * or ?. So */2 is not restricted, and a day must then match both:
// "0 0 */2 * MON" is the Mondays on odd days. Vixie's cron and its descendants do the same.
//
// An expression that no date can match, such as "0 0 30 2 *", is an error.
//
// # Daylight saving
//
// When a zone's clock goes forward, some times do not exist; when it goes back, some times happen twice. [DST] says what to
// do about either. By default, it does what the expression most likely means. All changes of offset are treated the same:
// by half an hour, at midnight, by a whole day, or for good.
//
// Zones come from the machine if it has them, else from a copy in the program. Machines with zone databases of different
// age may disagree on changes that were announced in between.
package schedule
