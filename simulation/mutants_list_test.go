package simulation

// mutants are the faults that were once there, and others of their kind.
func mutants() []mutant {
	one := func(file, old, text string) []edit { return []edit{{file, old, text}} }
	return []mutant{
		{
			"a ready follower is not woken", one("instance/stay.go", "	allowed := v.May && (s.refused || !old.May)\n", "	allowed := false\n"),
			"01-ready-follower-takes-work",
			[]string{"late"},
		},
		{
			"a retry wakes its own kind alone", one("queue/scripts/cycle_claim.lua", "if stirred then", "if stirred and (flags == 0 or want == 0) then"),
			"04-wake-the-right-kind",
			[]string{"late"},
		},
		{
			"slot zero may be missed", one("producer/scheduler.go", "		t.outage = before(t.began)\n", "		t.outage = t.clock.Now()\n"),
			"05-first-slot-is-not-missed",
			[]string{"missed"},
		},
		{
			"the gate opens before the dead are taken back", one("producer/scheduler.go", "	t.takeBack(ctx)\n", ""),
			"06-dead-runs-hold-no-key",
			[]string{"policy"},
		},
		{
			"a term's work is not begun again", one("instance/stay.go", "		case !s.confirmed(t, b.next(s.lease/5)):\n			continue\n",
				"		case s.confirmed(t, b.next(s.lease/5)):\n			<-t.ctx.Done()\n			continue\n"),
			"07-leads-and-schedules-notleader",
			[]string{"late", "missed", "stalled"},
		},
		{
			"what a change takes back may be missed", []edit{
				{"producer/push.go", "	return maxTime(now.Add(-max(t.cfg.Horizon, lateGrace)), t.outage)\n", "	return maxTime(now.Add(-lateGrace), t.outage)\n"},
				{"producer/push.go", "	if e.next.After(t.outage) && !e.next.After(missed) && !e.next.After(back) {\n", "	if e.next.After(t.outage) && false {\n"},
			},
			"08-change-loses-no-slot",
			[]string{"late", "missed"},
		},
		{
			"max_runs counts what was dropped", one("queue/scripts/advance.lua", "    if left > 0 then -- they did not run", "    if left > 100000 then -- they did not run"),
			"11-max-runs-counts-runs",
			[]string{"max_runs"},
		},
		{
			"a pause takes memory", one("queue/scripts/change.lua", "  redis.call(\"ZREM\", changed, \"\")\n", ""),
			"13-pause-while-full",
			[]string{"refused"},
		},
		{
			"a new lane is not read first", one("queue/scripts/cycle_claim.lua", "known ~= (counters[2] or \"0\")", "known == \"none\""),
			"15-new-lane",
			[]string{"order"},
		},
	}
}
