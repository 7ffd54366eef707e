-- lib_elect.lua elects the leader. It comes, after lib_wake.lua and before lib_lost.lua, before every script of the registry.
-- The first keys of these scripts are always
--
-- KEYS[1]  instances zset  id -> lease end (unix ms)
-- KEYS[2]  members   hash  id -> "generation order state standby lead consume release"
--                          state: s starting, r ready, d draining
--                          standby: 1; 2: asked to resign, so it leads only if no other can; else 0
-- KEYS[3]  leader    hash  id, gen, epoch, order, consume, open, since, back; pause: until when no instance claims;
--                          there: until when an election counts as one without a leaderless time, see register.lua
--                          monitor: "id generation when": who looks whether the leader lives, and when again, see look.lua
--                          sign: when the leader last pushed
-- KEYS[4]  meta      hash  last generation, epoch and order given; beat: when Redis last answered a heartbeat
-- KEYS[5]  events    stream
-- KEYS[6]  wake      channel (declared as a key so that it lies in the same slot)
-- KEYS[7]  details   hash  id -> JSON for people
-- KEYS[8]  releases  hash  release -> "order gone", gone: when its last instance was lost, 0 while any is registered
-- KEYS[9]  orphans   zset  generation -> when it was declared dead
-- KEYS[10] watch     zset  which instances will look again, and when (see queue/scripts/lib_wake.lua)
-- KEYS[11] trial     zset  generation -> until when it is on probation or, once it is ready, has to prove itself
-- KEYS[12] strikes   hash  release -> "how often it was lost soon after becoming ready, when last"
-- KEYS[13] declarers hash  generation that declared schedules -> "order gone", gone: when it was lost, or 0
-- KEYS[14] asked    hash  id -> "what generation when": what a person asked of the instance, see ask.lua
-- KEYS[15] suspects hash  id -> "generation listens wrong when since": whether its channel had a listener at its last heartbeat
--                          (1 or 0); how often it was suspected wrongly, and when last; since when it is suspected, or 0

local instances, members, leader, meta, events, channel = unpack(KEYS, 1, 6)
local details, releases, orphans, watch, trial, strikes, declarers, asked, suspects = unpack(KEYS, 7, 15)
local cap_events = 10000 -- queue.MaxEvents

-- At maxmemory Redis refuses a script's first write if that may take memory, and only the first. Even then a leader must be
-- elected, or no task would ever run and free memory. So the first write is one that takes no memory.
redis.call("ZREM", instances, "")

local function parse(member)
  local gen, order, state, standby, lead, consume, release =
    string.match(member or "", "^(%d+) (%d+) (%a) (%d) (%a+) (%a+) ?(.*)$")
  return {
    gen = tonumber(gen), order = tonumber(order), state = state, standby = standby == "1", resigned = standby == "2",
    lead = lead, consume = consume, release = release or "",
  }
end

-- generation returns the generation of a member. It also works if the rest of the entry is damaged.
local function generation(member)
  return num(string.match(member or "", "^(%d+) "))
end

local function pack(m)
  return table.concat({
    int(m.gen), int(m.order), m.state, m.standby and "1" or m.resigned and "2" or "0", m.lead, m.consume, m.release,
  }, " ")
end

-- rise returns the next generation, epoch or order: larger than the last one and at least the clock, so that it rises even
-- after Redis has lost its last writes. If another program wrote one so large that num would not read the next, rise begins
-- again at the clock.
local function rise(field)
  local n = math.max((num(redis.call("HGET", meta, field)) or 0) + 1, now)
  n = num(int(n)) or now
  redis.call("HSET", meta, field, int(n))
  return n
end

-- at_least makes a counter of meta as large as a value.
local function at_least(field, value)
  value = tonumber(value) or 0
  if value > (num(redis.call("HGET", meta, field)) or 0) then
    redis.call("HSET", meta, field, int(value))
  end
end

-- proof is how long an instance must stay ready until its release has proven itself (ms). If the instance is lost earlier,
-- its release gets a strike, and strikes put the release's next instance on probation: see state.lua.
local proof = 120000

-- raise gives the instances of a release a larger order. O(instances).
local function raise(release, order)
  local all = redis.call("HGETALL", members)
  for i = 1, #all, 2 do
    local m = parse(all[i + 1])
    if m.gen and m.release == release then
      m.order = order
      redis.call("HSET", members, all[i], pack(m))
      if redis.call("HEXISTS", declarers, int(m.gen)) == 1 then
        redis.call("HSET", declarers, int(m.gen), int(order) .. " 0")
      end
      if all[i] == redis.call("HGET", leader, "id") then
        redis.call("HSET", leader, "order", int(order)) -- instances of its release are known by it when they claim
      end
    end
  end
end

-- host returns the host that an instance says it is on, for people: nil if it says none.
local function host(id)
  return string.match(redis.call("HGET", details, id) or "", '"host":"([^"\\]+)"')
end

-- become makes an instance ready (r) or draining (d).
local function become(id, m, state)
  m.state = state
  redis.call("HSET", members, id, pack(m))
  redis.call("ZREM", trial, int(m.gen))
  if state == "r" and m.release ~= "" and not m.standby then
    redis.call("ZADD", trial, now + proof, int(m.gen))
  end
  record(events, cap_events, "event", state == "r" and "ready" or "draining", "instance", id, "release", m.release)
end

-- In a namespace that is split, the instances of a release share the partitions: each partition falls to the one with the highest
-- draw for it (rendezvous hashing: Thaler and Ravishankar, 1998). So one that joins or leaves moves only its own share.
local part = string.match(instances, "#%d+}:")
local function draw(m)
  m.draw = m.draw or redis.sha1hex(m.id .. part)
  return m.draw
end

-- newer reports whether an instance ranks above another.
local function newer(m, best)
  if not best or m.order ~= best.order then
    return not best or m.order > best.order
  end
  if part and m.release ~= best.release then
    return m.release > best.release -- first seen in one millisecond, each in another partition: all must agree
  end
  if part and m.id ~= best.id then
    return draw(m) > draw(best)
  end
  return m.gen > best.gen
end

-- living returns the instances whose leases run. No lease of onbeat is longer than a day. If one ends later, another program
-- wrote it, and its instance must not lead for ever.
local function living()
  return redis.call("ZRANGEBYSCORE", instances, "(" .. int(now), int(now + 86400000))
end

-- on_probation reports whether an instance is on probation. An instance that stood down is also starting, but is not in
-- trial: it waits for the end of its rest, which it alone knows.
local function on_probation(m)
  return m.state == "s" and redis.call("ZSCORE", trial, int(m.gen))
end

-- forgiven is after how long it is forgotten that an instance was suspected wrongly (ms).
local forgiven = 600000

-- suspicion reads what is noted of an instance in that generation. A damaged entry counts as absent.
local function suspicion(id, gen, text)
  local of, listens, wrong, at, since =
    string.match(text or redis.call("HGET", suspects, id) or "", "^(%d+) ([01]) (%d+) (%d+) (%d+)$")
  wrong, at, since = num(wrong), num(at), num(since)
  if of ~= gen or not (wrong and at and since) then
    return { listens = false, wrong = 0, at = 0, since = 0 }
  end
  if at + forgiven <= now then
    wrong, at = 0, 0
  end
  return { listens = listens == "1", wrong = wrong, at = at, since = since }
end

-- suspect notes a suspicion.
local function suspect(id, gen, s)
  redis.call("HSET", suspects, id,
    table.concat({ gen, s.listens and "1" or "0", int(s.wrong), int(s.at), int(s.since) }, " "))
end

-- suspicions returns a function that reports whether an instance is suspected: elections pass it over as long as another
-- instance could lead. It keeps its lease, and all that it runs.
local function suspicions()
  local all, noted = redis.call("HGETALL", suspects), {}
  for i = 1, #all, 2 do
    noted[all[i]] = all[i + 1]
  end
  return function(id, m)
    return noted[id] and m.gen and suspicion(id, int(m.gen), noted[id]).since > 0
  end
end

-- listeners returns how many listen to the channel of an instance: nil if Redis does not tell the user.
local function listeners(id)
  local reply = redis.pcall("PUBSUB", "NUMSUB", channel .. ":" .. id)
  return type(reply) == "table" and not reply.err and tonumber(reply[2]) or nil
end

-- relieve ends an instance's being the monitor.
local function relieve(id)
  if string.match(redis.call("HGET", leader, "monitor") or "", "^%S+") == id then
    redis.call("HDEL", leader, "monitor")
  end
end

-- may_lead reports whether an instance could lead, now or after the last other candidate.
local function may_lead(m)
  return m.gen and not m.standby and (m.state == "r" or on_probation(m))
end

-- pardon makes the highest-ranked instance on probation ready, and returns it. elect calls it if no other could lead.
local function pardon(ids)
  local best
  for _, id in ipairs(ids) do
    local m = parse(redis.call("HGET", members, id))
    m.id = id
    if on_probation(m) and newer(m, best) then
      best = m
    end
  end
  if best then
    become(best.id, best, "r")
  end
  return best
end

-- recall ends the resignation of an instance: it may lead like any other.
local function recall(m)
  m.resigned = false
  redis.call("HSET", members, m.id, pack(m))
  redis.call("HDEL", asked, m.id)
end

-- since reads back: when an instance led again after a time with no leader. The entry has the epoch for which it was written,
-- because it ends with that epoch.
local function since(back, epoch)
  local of, at = string.match(back or "", "^(%d+) (%d+)$")
  return of and of == epoch and tonumber(at) or nil
end

-- ended has the end of the lease of each instance that this call found lost.
local ended = {}

-- elect makes the highest-ranked ready instance lead. Rank is (order of its release, generation), see newer. With "sticky", an
-- incumbent of the newest release stays. If no such instance is left, one that was asked to resign leads, else one on
-- probation, else one that is suspected. A request to resign ends only if every instance that was not asked is gone: one that
-- is suspected may be back in a moment.
--
-- A new leader changes which instances may claim. So elect removes all watchers, and a message makes all instances look for
-- due tasks: a wake-up must not go to an instance that may not claim any more, or is frozen.
local function elect()
  local ids = living()
  local current = redis.call("HMGET", leader, "id", "gen", "open", "epoch", "back", "there")
  local suspected = suspicions()
  local best, incumbent, resigned, passed -- passed over: the best of those that are suspected
  for _, id in ipairs(ids) do
    local m = parse(redis.call("HGET", members, id))
    m.id, m.suspected = id, suspected(id, m)
    if m.gen and m.state == "r" and not m.standby then
      if m.suspected then
        local better = passed and passed.resigned ~= m.resigned and passed.resigned
        if better or (not passed or passed.resigned == m.resigned) and newer(m, passed) then
          passed = m
        end
      elseif m.resigned then
        resigned = newer(m, resigned) and m or resigned
      elseif newer(m, best) then
        best = m
      end
      if id == current[1] and int(m.gen) == current[2] and not m.resigned and not m.suspected then
        incumbent = m
      end
    end
  end
  if best and incumbent and best.lead == "sticky" and incumbent.order == best.order and incumbent.release == best.release then
    best = incumbent
  end
  if not best and resigned then
    if not passed or passed.resigned then
      recall(resigned)
    end
    best = resigned
  end
  best = best or pardon(ids) or passed
  if not best then
    if current[1] and current[1] ~= "" then
      redis.call("HSET", leader, "id", "", "gen", "0", "epoch", int(rise("epoch")), "open", "0", "since", int(now))
      -- The leaderless time may have begun long before this call found it: at the end of the last leader's lease.
      record(events, cap_events, "event", "no leader", "instance", current[1], "since", int(ended[current[1]] or now))
      redis.call("DEL", watch)
      tell(channel, "leader")
    end
    return
  end
  if best.id == current[1] and int(best.gen) == current[2] then
    return
  end
  -- After a time with no leader the gate stays shut until the new leader has dealt with the slots missed meanwhile. The
  -- field back says when the leaderless time ended. If another leader follows while the gate is still shut, back stays as it
  -- was for the first one. If an instance has proof that there was no leaderless time, back is 1, the beginning of time.
  local open = current[1] and current[1] ~= "" and current[3] or "0"
  local epoch = int(rise("epoch"))
  local there = num(current[6]) or 0
  local proven = there > now and there <= now + 60000 and 1
  local back = open == "1" and "" or epoch .. " " .. int(since(current[5], current[4]) or proven or now)
  redis.call("HDEL", leader, "there")
  redis.call("HSET", leader, "id", best.id, "gen", int(best.gen), "epoch", epoch, "order", int(best.order),
    "consume", best.consume, "open", open, "since", int(now), "back", back)
  record(events, cap_events, "event", "leader", "instance", best.id, "release", best.release, "epoch", epoch,
    "before", current[1] or "", unpack(given("host", host(best.id))))
  redis.call("DEL", watch)
  tell(channel, "leader")
end

-- forgot is set if Redis lost its last writes. It is then the caller's last heartbeat that Redis still has: Redis has
-- answered the caller a later one.
local forgot = ""

-- set_back is called when the clock of Redis was set back, by at least the given time. Leases were given by the old time and
-- would last until it comes again, so a dead leader could lead for hours. set_back moves all leases but the caller's with the
-- clock. It moves them by no more than the clock was, so that no lease ends before its holder expects. It also moves the
-- other moments that are kept: when something was lost or suspected, and until when a release has to prove itself.
-- O(instances + releases).
local function set_back(by, id)
  for _, other in ipairs(redis.call("ZRANGE", instances, 0, -1)) do
    if other ~= id then
      redis.call("ZINCRBY", instances, int(-by), other)
    end
  end
  for _, gen in ipairs(redis.call("ZRANGE", trial, 0, -1)) do
    redis.call("ZINCRBY", trial, int(-by), gen)
  end
  local notes = redis.call("HGETALL", suspects)
  for i = 1, #notes, 2 do
    local gen = string.match(notes[i + 1], "^%d+")
    local s = suspicion(notes[i], gen, notes[i + 1])
    if s.at > 0 or s.since > 0 then
      s.at, s.since = s.at > 0 and math.max(s.at - by, 1) or 0, s.since > 0 and math.max(s.since - by, 1) or 0
      suspect(notes[i], gen, s)
    end
  end
  for _, noted in ipairs({ releases, strikes, declarers }) do
    local all = redis.call("HGETALL", noted)
    for i = 1, #all, 2 do
      local what, at = string.match(all[i + 1], "^(%d+) (%d+)$")
      if at and at ~= "0" then
        redis.call("HSET", noted, all[i], what .. " " .. int(math.max(tonumber(at) - by, 1)))
      end
    end
  end
  if by >= 1000 then
    record(events, cap_events, "event", "clock set back", "instance", id, "ms", int(by))
  end
end

-- remember notes a heartbeat, and finds out whether Redis has lost the last heartbeat that it answered the caller (known).
-- had is the caller's own last heartbeat that Redis has, or nil if there is none. Another instance's heartbeat proves nothing:
-- that instance may have used this Redis already while the caller still talked to a former primary. It counts only if the
-- clock was set back. In meta, beat only rises, whatever the clock does; clock is the last time that the clock showed.
local function remember(id, known, had)
  local noted = redis.call("HMGET", meta, "beat", "clock", "back")
  local kept, clock, back = num(noted[1]) or 0, num(noted[2]) or 0, num(noted[3]) or -1
  known = tonumber(known or 0)
  redis.call("HSET", meta, "beat", int(math.max(kept, now)), "clock", int(now))
  if clock > now and clock <= now + 86400000 then -- else it was not set back, or the entry is damaged
    set_back(clock - now, id)
    back = now
    redis.call("HSET", meta, "back", int(back))
  end
  if had and known <= now and (had > back or back > now) then
    kept = had
  end
  if kept < known then
    forgot = int(kept)
    record(events, cap_events, "event", "lost writes", "instance", id, "kept", forgot, "known", int(known))
  end
end

-- view is what every registry call returns: now; the leader's id, generation, epoch and open; the versions of the lanes and
-- of the schedules, by which an instance knows what to read again; forgot; whether the caller may claim (member is its entry
-- in members, nil if it is not registered); while the gate is shut, when an instance led again (0: not known); and the
-- caller's state.
local function view(id, member)
  local lead = redis.call("HMGET", leader, "id", "gen", "order", "consume", "open", "pause", "epoch", "back")
  local versions = redis.call("HMGET", meta, "lanes", "schedules")
  return {
    now, lead[1] or "", lead[2] or "0", lead[7] or "0", lead[5] or "0", versions[1] or "0", versions[2] or "0", forgot,
    member and may(lead, id, string.match(member, "^%d+"), member) and 1 or 0,
    lead[5] ~= "1" and int(since(lead[8], lead[7]) or 0) or 0, parse(member).state or "",
  }
end

-- remains reports whether an instance of the release is registered.
local function remains(release)
  local all = redis.call("HGETALL", members)
  for i = 2, #all, 2 do
    if parse(all[i]).release == release then
      return true
    end
  end
  return false
end

-- asked_of returns what a person asked of an instance in that generation: "resign", "drain" or nil.
local function asked_of(id, gen)
  local what, of = string.match(redis.call("HGET", asked, id) or "", "^(%a+) (%d+) %d+$")
  return of == gen and what or nil
end

local asks_kept = 86400000

-- ask keeps the request of a person to an instance, for a day at least. So a process that was frozen, and whose lease ran out, still hears
-- of it when it registers again.
local function ask(id, gen, what)
  redis.call("HSET", asked, id, what .. " " .. gen .. " " .. int(now))
  redis.call("PEXPIRE", asked, asks_kept)
end

-- absent forgets a release, because its last instance left.
local function absent(release)
  redis.call("HDEL", releases, release)
  redis.call("HDEL", strikes, release)
end
