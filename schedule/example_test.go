package schedule_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

func Example() {
	berlin, _ := time.LoadLocation("Europe/Berlin")
	rule := schedule.Cron("30 2 * * *", berlin)
	now := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)

	grid, err := rule.Grid(rule.FirstAnchor(now))
	if err != nil {
		fmt.Println(err)
		return
	}
	for slot := range grid.Between(now, now.AddDate(0, 0, 3)) {
		fmt.Println(slot.In(rule.Location()))
		if why := rule.Explain(slot); why != "" {
			fmt.Println("    " + why)
		}
	}
	// Output:
	// 2026-03-28 02:30:00 +0100 CET
	// 2026-03-29 03:00:00 +0200 CEST
	//     02:30 does not exist on 2026-03-29: clocks go forward from 02:00 to 03:00; one run at 03:00 replaces it
	// 2026-03-30 02:30:00 +0200 CEST
}

func ExampleEvery() {
	anchor := time.Date(2026, 1, 1, 0, 0, 0, 250_000_000, time.UTC)
	grid, _ := schedule.Every(90 * time.Second).Grid(anchor)

	// A year later the grid still lies where it lay.
	fmt.Println(grid.Next(anchor.AddDate(1, 0, 0)))
	// Output: 2027-01-01 00:01:30.25 +0000 UTC
}

func ExampleRule_Validate() {
	err := schedule.Cron("61 * * * *", nil).Validate()
	fmt.Println(err)
	fmt.Println(schedule.Cron("0 22-2 * * *", nil).Validate())
	fmt.Println(errors.Is(err, task.ErrInvalid))
	// Output:
	// cron minute "61": out of range 0-59
	// cron hour "22-2": the range "22-2" runs backwards (if it is meant to wrap around, write 22-23,0-2)
	// true
}

func ExampleRule_FirstAnchor() {
	now := time.Date(2026, 1, 1, 12, 34, 56, 0, time.UTC)
	rule := schedule.Every(15 * time.Minute)
	fmt.Println(rule.FirstAnchor(now).Format(time.TimeOnly))
	rule.Start = schedule.StartAligned
	fmt.Println(rule.FirstAnchor(now).Format(time.TimeOnly))
	// Output:
	// 12:34:56
	// 12:45:00
}

func ExampleGrid_Between() {
	grid, _ := schedule.Cron("0 9 LW * *", nil).Grid(time.Time{})
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for slot := range grid.Between(from, from.AddDate(0, 3, 0)) {
		fmt.Println(slot.Format("Mon 2 Jan 15:04"))
	}
	// Output:
	// Fri 30 Jan 09:00
	// Fri 27 Feb 09:00
	// Tue 31 Mar 09:00
}

func ExampleRule_MarshalJSON() {
	rule := schedule.Every(90 * time.Minute)
	rule.Missed = schedule.MissedAll
	b, _ := json.Marshal(rule)
	fmt.Println(string(b))
	// Output: {"every":"1h30m","missed":"all"}
}

func ExampleParseEvery() {
	d, _ := schedule.ParseEvery("1d12h")
	fmt.Println(d)
	_, err := schedule.ParseEvery("5")
	fmt.Println(err)
	// Output:
	// 36h0m0s
	// every "5": a number without a unit (write numbers with units ms, s, m, h, d or w, such as 1h30m or 2w)
}

func ExampleDescribe() {
	rule := schedule.Cron("0 2 * * *", nil)
	rule.Timezone, rule.Jitter = "Asia/Seoul", time.Minute
	fmt.Println(schedule.Describe(rule))
	// Output: cron "0 2 * * *" Asia/Seoul, jitter 1m
}
