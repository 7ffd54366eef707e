package simulation

// mutants are the faults that were once there, and others of their kind. If newer code covers a fault, the mutant takes
// that code away too. Those without a plan are left to seeds.
func mutants() []mutant {
	one := func(file, old, text string) []edit { return []edit{{file, old, text}} }
	return []mutant{
		{
			"a ready follower is not woken", one("instance/session.go", "	allowed := v.May && (s.refused || !old.May)\n", "	allowed := false\n"),
			"01-ready-follower-takes-work",
			[]string{"late"},
		},
		{
			"a retry wakes its own kind alone", one("internal/queue/scripts/cycle_claim.lua", "if stirred then", "if stirred and (flags == 0 or want == 0) then"),
			"04-wake-the-right-kind",
			[]string{"late"},
		},
		{
			"slot zero may be missed", one("producer/scheduler.go", "		t.outage = maxTime(before(t.returned()), now.Add(-t.forgives()))\n", "		t.outage = t.clock.Now()\n"),
			"05-first-slot-is-not-missed",
			[]string{"missed"},
		},
		{
			"each leader counts from itself", one("producer/scheduler.go", "		t.outage = maxTime(before(t.returned()), now.Add(-t.forgives()))\n", "		t.outage = before(t.began)\n"),
			"18-led-before-the-gate-opened",
			[]string{"missed"},
		},
		{
			"the gate opens before the dead are taken back, and a missed slot counts like one on time", []edit{
				{"producer/scheduler.go", "	t.takeBack(ctx)\n", ""},
				{"producer/step.go", "	t.Priority, t.Overlap = min(t.Priority, task.Normal), task.Behind\n", "	t.Priority = min(t.Priority, task.Normal)\n"},
			},
			"06-dead-runs-hold-no-key",
			[]string{"policy"},
		},
		{
			"a term's work is not begun again, and nobody notices", []edit{
				{
					"instance/session.go", "		case !s.confirmed(t, b.next(s.lease/5)):\n			continue\n",
					"		case s.confirmed(t, b.next(s.lease/5)):\n			<-t.ctx.Done()\n			continue\n",
				},
				{"producer/progress.go", "		if !leads || time.Since(since) < most {\n", "		if leads || true {\n"},
			},
			"07-leads-and-schedules-notleader",
			[]string{"late", "missed", "stalled"},
		},
		{
			"what a change takes back may be missed", []edit{
				{"producer/push.go", "	return maxTime(now.Add(-t.forgives()), t.outage)\n", "	return maxTime(now.Add(-lateGrace), t.outage)\n"},
				{"producer/push.go", "	if e.next.After(t.outage) && !e.next.After(missed) && !e.next.After(back) {\n", "	if e.next.After(t.outage) && false {\n"},
				{"instance/scripts/look.lua", "if known and due <= now then", "if false then"}, // else no leader is late
			},
			"08-change-loses-no-slot",
			[]string{"late", "missed"},
		},
		{
			"max_runs counts what was dropped", one("internal/queue/scripts/advance.lua", "    if left > 0 then -- they did not run", "    if left > 100000 then -- they did not run"),
			"11-max-runs-counts-runs",
			[]string{"max_runs"},
		},
		{
			"a pause takes memory", []edit{
				{"internal/queue/scripts/change.lua", "  redis.call(\"ZREM\", changed, \"\")\n", ""},
				{"internal/store/scripts/careful.lua", "      redis.call(\"ZREM\", key, nobody)\n", ""},
			},
			"13-pause-while-full",
			[]string{"refused"},
		},
		{
			"a new lane is not read first", one("internal/queue/scripts/cycle_claim.lua", "known ~= (counters.lanes or \"0\")", "known == \"none\""),
			"15-new-lane",
			[]string{"order"},
		},
		{
			"who declared newer is present for good", []edit{
				{"instance/scripts/declare.lua", "  local stays = present(order, gen, gone)\n", "  local stays = math.huge\n"},
				{"instance/scripts/lib_lost.lua", "    redis.call(\"HDEL\", declarers, gen)\n", ""},
			},
			"02-rollout-undone",
			[]string{"in force"},
		},
		{
			"what is behind holds its key like any other", one("internal/queue/scripts/cycle_claim.lua",
				"      return runs - (num(redis.call(\"HGET\", active, \"b:\" .. key)) or 0)\n", "      return runs\n"),
			"03-backfill-beside-the-beat",
			[]string{"late", "missed"},
		},
		{
			"a key is filled from the first in line alone", []edit{
				{"internal/queue/scripts/cycle_claim.lua", "if #keys > 0 and release(keys, true) and flags == 1 then", "if false then"},
			},
			"09-key-over-lanes",
			[]string{"late"},
		},
		{
			"what had begun comes back as if it had not", one("consumer/run.go", "	if begun || t.Attempts > 0 {\n", "	if t.Attempts > 0 {\n"),
			"10-handed-back-is-not-missed",
			[]string{"late", "missed"},
		},
		{
			"a request to cancel does not hold a retry", one("internal/queue/scripts/cycle_settle.lua", "refused[#refused + 1], not_ok[i] = int(i - 1), true", ""),
			"12-cancel-while-it-fails",
			[]string{"undead"},
		},
		{
			"nobody is on probation, nor suspected", []edit{
				{"instance/scripts/state.lua", "  if n == 0 or m.standby or not rival() then", "  if true then"},
				{"instance/scripts/look.lua", "if known and due <= now then", "if false then"},
			},
			"14-crash-loop",
			[]string{"stalled"},
		},
		{
			"what was lost is forgotten after a minute", one("instance/registry.go", "const releaseMemory = 24 * time.Hour\n", "const releaseMemory = time.Minute\n"),
			"16-lost-is-not-gone",
			[]string{"off the grid", "in force"},
		},
		{
			"the gate opens behind all that was missed", one("producer/push.go", "	return t.pushUntil(ctx, missed, now, now)\n",
				"	if err := t.pushUntil(ctx, missed, now, now); err != nil {\n		return err\n	}\n	for len(t.behind) > 0 {\n		if err := t.repay(ctx); err != nil {\n			return err\n		}\n	}\n	return nil\n"),
			"17-gate-opens-before-the-rest",
			[]string{"leaderless", "late"},
		},
		{
			"a call is waited for longer than the lease", one("consumer/call.go", "min(c.session.Lease(), callTimeout))", "callTimeout)"),
			"19-a-call-on-a-dead-connection",
			[]string{"late"},
		},
		{
			"what redis holds after it lost writes is not asked for", one("instance/session.go", "return s.claims.Swap(false) }", "return false }"),
			"20-held-after-it-was-lost",
			[]string{"left over", "late"},
		},
		{
			"who has no listener is not suspected", one("instance/scripts/look.lua", "if alone > 0 and alone + patience(9) < due then", "if false then"),
			"21-a-crash-costs-no-lease",
			[]string{"passed on"},
		},
		{
			"who owes a look is not suspected", one("instance/scripts/look.lua", "  due = math.max(since, owed) + patience(10)\n", "  due = math.huge\n"),
			"22-a-freeze-costs-no-lease",
			[]string{"passed on"},
		},
		{
			"a monitor that is late keeps its place", one("instance/scripts/heartbeat.lua", "planned + tonumber(ARGV[7]) < now", "false"),
			"23-the-monitor-is-lost-first",
			[]string{"passed on"},
		},
		{
			"nobody says that a message was not received", one("internal/queue/scripts/lib_wake.lua", "asked[reads], silent = nil, true", "asked[reads] = nil"),
			"24-lost-while-nothing-is-due",
			[]string{"passed on"},
		},
		{
			"a heartbeat is no sign of life", one("instance/scripts/look.lua", "redis.call(\"ZSCORE\", instances, lead[1]), seq", "\"\", seq"),
			"25-busy-is-not-silent",
			[]string{"suspected"},
		},
		{
			"an effect has no fence", one("handlers/once.go", "	if first, err := row.insert(ctx, tx); err != nil || !first {\n		return false, err\n	}\n", ""),
			"27-an-effect-happens-once",
			[]string{"twice"},
		},
		{
			"a schedule takes all workers", one("internal/queue/scripts/cycle_crowd.lua", "elseif n < half then", "elseif n then"),
			"30-half-of-the-workers",
			[]string{"crowd"},
		},
		{
			"nobody says which schedule has many workers", one("consumer/crowd.go", "		if 8*n > workers {\n", "		if false {\n"),
			"30-half-of-the-workers",
			[]string{"crowd"},
		},
		{
			"a task has one attempt more than it may have", one("internal/queue/failed.go", "next.Attempts >= t.AttemptsAllowed()", "next.Attempts > t.AttemptsAllowed()"),
			"31-attempts-by-the-gap",
			[]string{"attempts"},
		},
		{
			"a slot is retried for the whole gap", one("producer/attempts.go", "min(gap/2, retriesLast)", "min(gap, retriesLast)"),
			"31-attempts-by-the-gap",
			[]string{"attempts"},
		},
		{
			"a slot is retried for a quarter of the gap", one("producer/attempts.go", "min(gap/2, retriesLast)", "min(gap/4, retriesLast)"),
			"31-attempts-by-the-gap",
			[]string{"late", "missed"},
		},
		{
			"a run that was lost costs no attempt", one("instance/recover.go", "	t := queue.Fail(c.Task,", "	c.Task.Attempts = max(c.Task.Attempts-1, 0)\n	t := queue.Fail(c.Task,"),
			"31-attempts-by-the-gap",
			[]string{"attempts"},
		},
		{
			"the policy all is the policy skip", one("producer/step.go", "		e.fallBehind(m, now, missed, latest)\n", "		e.dispose(m, latest, \"policy skip\")\n"),
			"32-cancelled-while-nobody-is-there",
			[]string{"policy"},
		},
		{
			"the policy once is the policy skip", one("producer/step.go", "	case schedule.MissedSkip:\n", "	case schedule.MissedSkip, schedule.MissedOnce:\n"),
			"35-missed-once-beside-the-beat",
			[]string{"policy"},
		},
		{
			"the policy once keeps all that was pushed ahead", one("producer/step.go", "e.s.Missed == schedule.MissedAll || slot.Equal(newest) && keepNewest",
				"e.s.Missed != schedule.MissedSkip || slot.Equal(newest) && keepNewest"),
			"35-missed-once-beside-the-beat",
			[]string{"policy"},
		},
		{
			"the policy once keeps the newest that was pushed ahead", one("producer/step.go", "(e.last.Paused || next.IsZero() || next.After(missed))", "!next.IsZero()"),
			"35-missed-once-beside-the-beat",
			[]string{"policy"},
		},
		{
			"a standby is not present", one("instance/scripts/declare.lua", "    if orders[order] then\n", "    if false then\n"),
			"33-a-standby-is-present",
			[]string{"in force"},
		},

		{name: "an encrypted task counts in no key", edits: one("internal/queue/scripts/cycle_claim.lua", `"^[12]k(%d+)`, `"^1k(%d+)`)},

		// Faults that never existed, in the loops of Go. Seeds find these.
		{name: "a wake-up is dropped", edits: one("consumer/consumer.go", "			look = c.woken() || look\n", "			_ = c.woken()\n")},
		{name: "the alarm is not set to what comes next", edits: one("consumer/consumer.go", "		c.alarm.Set(c.clock.Local(r.NextDue))\n", "		c.alarm.Set(time.Time{})\n")},
		{name: "a lost reply raises no doubt", edits: one("consumer/doubt.go", "	c.doubt = true\n", "")},
		{name: "an overslept watcher is nobody's matter", edits: one("instance/keep.go", "	if b.Overslept {\n", "	if false {\n")},
		{name: "what was lost is not taken back", edits: one("instance/keep.go", "		case s.orphans <- b.Orphans:\n", "		case s.orphans <- nil:\n")},
		{name: "a heartbeat cancels nothing", edits: one("instance/keep.go", "	s.cancelRuns(b.Cancel)\n", "")},
		{name: "the monitor does not confirm what it saw", edits: one("instance/monitor.go", "	w.seen, w.leads = l.Seen, l.LeaderGen\n", "	w.leads = l.LeaderGen\n")},
		{name: "a new connection is trusted at once", edits: one("instance/look.go", "	lookTrusts = time.Second ", "	lookTrusts = 0 * time.Second ")},
		{name: "who was suspected wrongly is suspected again as soon", edits: one("instance/scripts/look.lua", " * 2 ^ math.min(them.wrong, 20)", "")},
		{name: "the end of a term is not noticed", edits: one("instance/session.go", "		s.endTerm(ErrDeposed)\n", "		_ = ErrDeposed\n")},
		{name: "trust outlives the lease", edits: one("instance/trust.go", "			s.end(ErrLeaseLost)\n", "")},
		{name: "a change is not read", edits: one("producer/scheduler.go", "				err = t.insist(ctx, t.refresh)\n", "				err = nil\n")},
		{name: "the leader sleeps too long", edits: one("producer/scheduler.go", "		alarm.Reset(d)\n", "		alarm.Reset(10*d + 5*time.Second)\n")},
	}
}
