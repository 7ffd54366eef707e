package model

// mutants are what is broken, script by script. (The in-process server's Lua compiles some an "if false" wrongly: then the
// condition is one that is never true.)
func mutants() []mutant {
	list := []mutant{
		// cycle.lua: who may, and what is settled
		{"cycle", "replies", `seq <= last_seq`, `false`},
		{"cycle", "outage", `lead[5] ~= "1"`, `false`},
		{"cycle", "outage", `return state == "r" and (lead[4]`, `return true or (lead[4]`},
		{"cycle", "releases", `state == "r" and (`, `(`},
		{"cycle", "releases", `lead[4] == "release" and lead[3] == order`, `lead[4] == "release"`},
		{"cycle", "again", `value and string.find(value, fence, 1, true) == 1`, `value`},
		{"cycle", "tasks", `drop(running, 1, n)`, ``},
		{"cycle", "replies", `void[#void + 1] = int(i - 1)`, ``},
		{"cycle", "tasks", `n > 0 and drop(tasks, i - n + 1, i) or 0`, `0`},
		{"cycle", "tasks", `many("ZADD", done, ends)`, ``},
		{"cycle", "tasks", "if #ends > 0 then many(\"HSET\", tasks, bodies)", `if #ends > 0 then`},
		{"cycle", "tasks", "for key, list in pairs(sets) do many(\"ZADD\", key, list)", `for key, list in pairs(sets) do`},
		{"cycle", "tasks", `many("ZADD", dead, died)`, ``},
		{"cycle", "tasks", "if #died > 0 then many(\"HSET\", tasks, bodies)", `if #died > 0 then`},
		{"cycle", "slots", "if ok[index] then notes[#notes + 1] = text", `if false then`},
		{"cycle", "keys", `unlimit(active, held, value, declared, freed) stir(now)`, `stir(now)`},
		{"cycle", "lanes", `lanes_known(lanes_hash, meta, channel, used)`, ``},
		// cycle_claim.lua
		{"cycle", "tasks", `redis.call("ZREMRANGEBYRANK", lane.key, 0, found - 1)`, ``},
		{"cycle", "slots", `"-inf", int(now), "BYSCORE"`, `"-inf", "+inf", "BYSCORE"`},
		{"cycle", "keys", `< limit then`, `< limit + 1 then`},
		{"cycle", "keys", `redis.call("HINCRBY", active, "k:" .. key, 1)`, ``},
		{"cycle", "tasks", `redis.call("HINCRBY", active, lane.slot, count)`, ``},
		{"cycle", "keys", `many("HDEL", tasks, drop)`, ``},
		{"cycle", "keys", `redis.call("ZREM", held, waiting)`, ``},
		{"cycle", "keys", `hold(held, key, due, lane.key, task)`, ``},
		{"cycle", "keys", `notes[#notes + 1] = gone .. " skipped overlap"`, ``},
		{"cycle", "tasks", `many("HSET", running, entries)`, ``},
		{"cycle", "tasks", `math.max(fence + 1, now * 1000)`, `math.max(fence, now * 1000)`},
		{"cycle", "tasks", `redis.call("HSET", meta, "fence", int(fence))`, ``},
		// lib_held.lua, where cycle uses it
		{"cycle", "keys", `redis.call("ZREM", held, first)`, ``},
		{"cycle", "keys", `redis.call("ZADD", set, due, id)`, ``},
		{"cycle", "keys", `if redis.call("HINCRBY", active, name, -1) <= 0 then`, `if redis.call("HINCRBY", active, name, -1) <= -1 then`},

		{"advance", "slots", `lead[1] ~= id or lead[2] ~= gen or lead[3] ~= epoch`, `false`},
		{"advance", "terms", `or lead[3] ~= epoch`, ``},
		{"advance", "slots", `current[i] ~= plan.expect`, `nil == plan.expect`},
		{"advance", "slots", `many("HSET", last, becomes)`, ``},
		{"advance", "slots", `many("HSET", tasks, records)`, ``},
		{"advance", "slots", `many("ZADD", KEYS[9 + lane], set)`, ``},
		{"advance", "slots", `notes[#notes + 1] = plan.note`, ``},
		{"advance", "slots", `lanes_known(lanes, meta, channel, used)`, ``},
		{"advance", "outage", `due and tonumber(due) == tonumber(ARGV[p + 2])`, `due`},
		{"advance", "outage", `redis.call("ZREM", set, ARGV[p + 1])`, ``},
		{"advance", "outage", `redis.call("HDEL", tasks, ARGV[p + 1])`, ``},
		{"advance", "outage", `notes[#notes + 1] = ARGV[p + 1] .. " missed outage"`, ``},

		{"change", "terms", `epoch ~= "" and redis.call("HGET", leader, "epoch") ~= epoch`, `false`},
		{"change", "slots", `current ~= expect`, `false`},
		{"change", "slots", `if ms > now then`, `if false then`},
		{"change", "slots", `if ms > now then`, `if ms >= now then`},
		{"change", "slots", `redis.call("ZREM", KEYS[8 + lane], task) == 1`, `true`},
		{"change", "slots", `redis.call("HDEL", tasks, task)`, ``},
		{"change", "slots", `stays = math.min(stays, now)`, ``},
		{"change", "slots", `paused == "" and stopped or paused`, `stopped`},
		{"change", "slots", `redis.call("HDEL", last, name)`, ``},
		{"change", "slots", `redis.call("HDEL", schedules, name)`, ``},
		{"change", "slots", `math.max(rev + 1, version)`, `rev + 1`},
		{"change", "slots", `stays = math.max(stays, math.min(tonumber(slot), now))`, ``},
		{"change", "slots", `notes[#notes + 1] = note`, ``},
		{"change", "slots", `redis.call("HSET", schedules, name, definition)`, ``},
		{"change", "slots", `slot == "" and not again and now or now + 1`, `now`},

		{"change", "retired", `redis.call("HSET", retired, name, table.concat({`, `redis.call("HSET", retired, "", table.concat({`},
		{"change", "retired", `redis.call("ZADD", retirements, now, name)`, ``},
		{"change", "retired", `int(stays), int(runs - left), zero`, `int(was), int(runs - left), zero`},
		{"change", "retired", `int(stays), int(runs - left), zero`, `int(stays), int(runs), zero`},
		{"change", "retired", `redis.call("HDEL", retired, name)`, ``},
		{"change", "retired", `if by or definition == "-" then`, `if definition == "-" then`},

		{"schedules", "slots", `redis.call("HMGET", KEYS[2], unpack(ARGV))`, `redis.call("HMGET", KEYS[2], "other")`},

		{"recover", "lost", `not redis.call("ZSCORE", orphans, gen)`, `false`},
		{"recover", "lost", `redis.call("HGET", running, task) == value`, `true`},
		{"recover", "lost", `redis.call("HDEL", running, task)`, ``},
		{"recover", "lost", `redis.call("HSET", tasks, task, body)`, ``},
		{"recover", "lost", `redis.call("ZADD", dead, now, task)`, ``},
		{"recover", "lost", `redis.call("ZADD", KEYS[10 + tonumber(lane)], due, task)`, ``},
		{"recover", "lost", "unlimit(active, held, value, declared, {})", ``},
		{"recover", "lost", `if left == 0 then`, `if true then`},
		{"recover", "lost", `if left == 0 then`, `if false then`},
		{"recover", "lost", `notes[#notes + 1] = note`, ``},

		{"recover", "lanes", `lanes_known(lanes, meta, channel, { unpack(ARGV, 5, 4 + n_lanes) })`, ``},

		{"cancel", "keys", `redis.call("ZREM", set, task) == 1`, `redis.call("ZSCORE", set, task)`},
		{"cancel", "keys", `redis.call("ZREM", held, member)`, ``},
		{"cancel", "queue", `if key ~= "" and tonumber(`, `if false and tonumber(`},
		{"cancel", "keys", `redis.call("HDEL", tasks, task)`, ``},
		{"cancel", "slots", `record(history, ARGV[8], "runs", ARGV[9])`, ``},
		{"cancel", "keys", `redis.call("HSET", cancel, task, int(fence)`, `redis.call("HSET", cancel, task, int(fence - 1)`},
		{"cancel", "ended", `if ARGV[5] ~= "1" then`, `if false then`},
		{"cancel", "ended", `redis.call("ZREM", dead, task)`, ``},
		{"cancel", "ended", `redis.call("ZREM", done, task)`, ``},

		{"revive", "ended", `redis.call("ZREM", dead, task) == 1`, `true`},
		{"revive", "ended", `redis.call("HSET", tasks, task, body)`, ``},
		{"revive", "ended", `redis.call("ZADD", KEYS[6 + lane], now, task)`, ``},
		{"revive", "lanes", `lanes_known(lanes, meta, ARGV[1], used)`, ``},

		{"enqueue", "ended", `look and (seen[id] or`, `false and (seen[id] or`},
		{"enqueue", "ended", `elseif holder then`, `elseif false then`},
		{"enqueue", "ended", `put("HSET", tasks, records, 1, n)`, ``},
		{"enqueue", "ended", `redis.call("SET", key, taken[key], "PX", ARGV[uniques + n + i - 1])`, ``},
		{"enqueue", "ended", `lanes_known(lanes, meta, channel, used)`, ``},
		{"enqueue", "ended", `redis.call("HINCRBY", meta, "lanes", 1)`, ``},

		{"tidy", "ended", `"-inf", now, "LIMIT", 0, most`, `"-inf", "+inf", "LIMIT", 0, most`},
		{"tidy", "ended", `many("HDEL", tasks, old)`, ``},

		{"register", "registry", "sweep()\nlocal all", `local all`},
		{"register", "restarts", `redis.call("ZADD", orphans, now, int(before.gen))`, ``},
		{"register", "releases", `or ARGV[10])`, `or 0)`},
		{"register", "releases", `if gone > 0 and now - gone >= tonumber(ARGV[8]) then`, `if false then`},
		{"register", "releases", `if gone > 0 and now - gone >= tonumber(ARGV[8]) then`, `if gone > 0 then`},
		{"register", "releases", `redis.call("HSET", releases, release, int(order) .. " 0")`, ``},
		{"register", "registry", "elect()\nend\nreturn { int(gen)", "end\nreturn { int(gen)"},
		{"register", "registry", `redis.call("ZADD", instances, now + tonumber(ARGV[2]), id)`, `redis.call("ZADD", instances, now + 1, id)`},
		{"register", "registry", `or 0) + 1, now)`, `or 0), now)`},

		{"state", "loop", `n == 0 or m.standby or not rival()`, `true`},
		{"state", "loop", `n == 0 or m.standby or not rival()`, `n == 0 or m.standby`},
		{"state", "loop", `redis.call("ZADD", trial, now + proof, int(m.gen))`, ``},
		{"deregister", "loop", `best = best or pardon(ids)`, ``},
		{"heartbeat", "loop", `best = best or pardon(ids)`, ``},
		{"heartbeat", "loop", `redis.call("HSET", strikes, m.release, int(n + 1) .. " " .. int(now))`, ``},
		{"deregister", "loop", `redis.call("HDEL", strikes, release)`, ``},

		{"promote", "promoted", "-- lately. O(instances).\nsweep()", ``},
		{"promote", "promoted", `order = rise("order")`, `order = tonumber(string.match(known, "^%d+"))`},
		{"promote", "promoted", `redis.call("HSET", releases, release, int(order) .. (`, `redis.call("HSET", releases, "", int(order) .. (`},
		{"promote", "promoted", `redis.call("HEXISTS", declarers, int(m.gen)) == 1`, `false`},
		{"promote", "promoted", `redis.call("HSET", members, all[i], pack(m))`, ``},
		{"promote", "promoted", `redis.call("HSET", leader, "order", int(order))`, ``},
		{"promote", "promoted", `elect() end return { int(order)`, `end return { int(order)`},

		{"state", "registry", `and m.state ~= "d"`, ``},
		{"state", "registry", "end\nsweep()", `end`},
		{"state", "registry", "end\n  elect()", `end`},
		{"state", "registry", `redis.call("HSET", members, id, pack(m))`, ``},

		{"heartbeat", "registry", `redis.call("ZADD", instances, now + tonumber(ARGV[3]), id)`, ``},
		{"heartbeat", "registry", `local found = sweep()`, `local found = false`},
		{"heartbeat", "lost", `if found or reply[2] == id then`, `if false then`},
		{"heartbeat", "keys", `redis.call("HGETALL", cancel)`, `{}`},

		{"deregister", "replies", `redis.call("ZADD", orphans, now, ARGV[2])`, ``},
		{"deregister", "restarts", `m.gen and int(m.gen) == ARGV[2]`, `m.gen`},
		{"deregister", "registry", `absent(m.release)`, ``},
		{"deregister", "declared", `over(m, 0)`, ``},
		{"deregister", "election", "\n  elect()\nend\nreturn view()", "\nend\nreturn view()"},
		{"deregister", "registry", `over(m, 0) sweep()`, `over(m, 0)`},
		{"deregister", "registry", `redis.call("HDEL", members, id) redis.call("HDEL", details, id) unwatch(id) redis.call("HDEL", running, "")`, ``},

		{"open", "terms", `or lead[3] ~= ARGV[3]`, ``},
		{"open", "restarts", `lead[1] ~= ARGV[1] or lead[2] ~= ARGV[2] or lead[3] ~= ARGV[3]`, `false`},
		{"open", "registry", `redis.call("HSET", leader, "open", "1")`, ``},

		{"declare", "undone", `order > m.order or order == m.order and gen > m.gen`, `false`},
		{"declare", "undone", `order > m.order or order == m.order and gen > m.gen`, `order > m.order`},
		{"declare", "undone", `math.max(gone + grace - now, 0)`, `math.huge`},
		{"declare", "undone", `math.max(gone + grace - now, 0)`, `0`},
		{"declare", "undone", `if orders[order] then`, `if false then`},
		{"declare", "undone", `gone = lost[order] or 0`, ``},
		{"declare", "declared", `if other.state == "d" then`, `if false then`},
		{"declare", "undone", `redis.call("HDEL", declarers, declared[i])`, ``},
		{"declare", "declared", `lead[1] ~= ARGV[1] or lead[2] ~= ARGV[2] or lead[3] ~= ARGV[3]`, `false`},
		{"declare", "declared", `redis.call("HSET", declarers, ARGV[2], int(m.order) .. " 0")`, ``},
	}
	// What every script that acts for an instance must look at, and what each that moves leadership shares.
	for script, room := range map[string]string{
		"cycle": "replies", "advance": "restarts", "heartbeat": "registry", "state": "registry", "open": "restarts", "declare": "restarts",
	} {
		list = append(list,
			mutant{script, room, `return lease and tonumber(lease) > now, member`, `return lease, member`},
			mutant{script, "restarts", `or string.match(member, "^%d+") ~= gen`, ``})
	}
	list = append(list, mutant{"state", "sticky", `incumbent.order == best.order`, `true`})
	for _, script := range []string{"state", "heartbeat", "deregister"} {
		list = append(list, electing(script)...)
	}
	return list
}

// electing are what can be broken in lib_elect.lua.
func electing(script string) []mutant {
	return []mutant{
		{script, "election", `m.order > best.order or`, `m.order < best.order or`},
		{script, "election", `m.order == best.order and m.gen > best.gen`, `m.order == best.order and m.gen < best.gen`},
		{script, "registry", `m.gen and m.state == "r" and`, `m.gen and`},
		{script, "releases", `m.state == "r" and not m.standby`, `m.state == "r"`},
		{script, "election", `local epoch = int(rise("epoch"))`, `local epoch = redis.call("HGET", meta, "epoch") or "1"`},
		{script, "election", `current[3] or "0"`, `"1" or "0"`},
		{script, "registry", `"epoch", int(rise("epoch")), "open", "0"`, `"epoch", int(rise("epoch")), "open", "1"`},
		{script, "registry", "    redis.call(\"ZADD\", orphans, now, int(m.gen))", ``},
		{script, "forgotten", "lose(ends) elect()", `elect()`},
		{script, "drained", `lease_end = 0`, ``},
		{script, "undone", `over(m, lease_end)`, ``},
		{script, "sticky", `best.lead == "sticky" and`, `false and`},
	}
}
