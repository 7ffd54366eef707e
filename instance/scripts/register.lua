-- register.lua takes an instance into the registry, as a new generation. It does not lead or take work before it is
-- ready (state.lua).
--
-- KEYS[1..15] see lib_elect.lua
-- KEYS[16] running hash of the largest generation the caller knows of, which is its last one
-- ARGV[1] id  [2] lease ms  [3] standby 0|1  [4] lead  [5] consume  [6] release  [7] details
-- ARGV[8] how long a release that was lost keeps its order (ms)
-- ARGV[9] the largest generation the caller knows of, or 0: the next is larger, even if Redis lost its memory
-- ARGV[10] the order the caller had before, or 0: it has run all the while, so its release has not been absent
-- ARGV[11] the clock of Redis when it last answered the caller a heartbeat, or 0
-- ARGV[12] "1" if there was a leader then, and the gate was open
-- ARGV[13] the order of the release in other partitions, as far as the caller knows, or 0: here it is at least that
-- Returns {generation, order, view...}. O(instances + releases); it also reads 1,000 events if Redis has lost the caller's
-- registration. Errors: PARTITIONS.
--
-- A release is newer the later it was first seen after being absent. Leaving cleanly makes a release absent at once, so
-- a release that you roll back to is the newest again, even while its last instances drain. Being lost makes it absent only
-- after a day. So a crashed instance of an old release that comes back, in the middle of a rollout or long after, is still of
-- the old release. An instance that lost Redis, or was paused, keeps its release's order too: it passes ARGV[10].
--
-- If Redis answered the caller less than a lease ago, but the caller's lease here has run out, then Redis has lost writes.
-- By the leases that Redis still has, no instance was there. But if an instance led when Redis answered the caller, there
-- was no time with no leader, and slots that have come since are late, not missed.
local id, release = ARGV[1], ARGV[6]
local split = redis.call("HGET", meta, "partitions")
if split then -- an instance that knows of it registers in each partition
  return redis.error_reply("PARTITIONS " .. split)
end

-- drains_all reports whether a release is leaving: instances of it are registered, and each of them drains.
local function drains_all(name)
  local any = false
  for _, text in ipairs(redis.call("HVALS", members)) do
    local m = parse(text)
    if m.release == name then
      if m.state ~= "d" then
        return false
      end
      any = true
    end
  end
  return any
end

-- last_beat returns the caller's own last heartbeat that Redis has. If the caller was dropped, that is when its last lease
-- began, as the event of its loss says. If Redis lost its registration, it is the last heartbeat of any instance before that.
-- last_beat returns nil if no heartbeat tells anything: the caller was never here, or not lately, or another instance with
-- its ID was here since.
local known, lease = tonumber(ARGV[11]), tonumber(ARGV[2])
local ends = redis.call("ZSCORE", instances, id)
local lately = known > 0 and known <= now + lease and known + lease > now
local function last_beat()
  if known == 0 then
    return nil
  end
  if ends and int(generation(redis.call("HGET", members, id)) or 0) == ARGV[9] then
    return ends - lease
  end
  if not lately then
    return nil
  end
  for _, entry in ipairs(redis.call("XREVRANGE", events, "+", "-", "COUNT", 1000)) do
    local e = {}
    for i = 1, #entry[2], 2 do
      e[entry[2][i]] = entry[2][i + 1]
    end
    if e.event == "lost" and e.instance == id and e.generation == ARGV[9] then
      return num(e.lease) and e.lease - lease or nil
    end
  end
  local noted = redis.call("HMGET", meta, "gen", "beat")
  if (num(noted[1]) or 0) < tonumber(ARGV[9]) then
    return math.max(math.min(num(noted[2]) or 0, tonumber(ARGV[9]) - 1), 0)
  end
end
local had = last_beat()
local there = ARGV[12] == "1" and ARGV[3] ~= "1" and lately and not (ends and tonumber(ends) > now)

sweep()
if there and (redis.call("HGET", leader, "id") or "") == "" then
  redis.call("HSET", leader, "there", int(now + math.min(lease, 60000)))
end
local all, lost = redis.call("HGETALL", releases), {}
for i = 1, #all, 2 do
  local gone = tonumber(string.match(all[i + 1], " (%d+)$") or 0)
  if gone > 0 and now - gone >= tonumber(ARGV[8]) then
    absent(all[i])
  elseif gone > 0 then
    lost[#lost + 1] = { order = tonumber(string.match(all[i + 1], "^%d+")), release = all[i] }
  end
end
if #lost > 100 then -- for example, a program that has a new release name at each start, and is always killed
  table.sort(lost, function(a, b) return a.order > b.order end)
  for i = 101, #lost do
    absent(lost[i].release)
  end
end
redis.call("ZREMRANGEBYSCORE", trial, "-inf", int(now - 7200000))
local member = redis.call("HGET", members, id)
local before, over_gen = parse(member), generation(member)
if not over_gen and redis.call("EXISTS", KEYS[16]) == 1 then -- its entry was lost or damaged, and it held claims
  over_gen = num(ARGV[9])
end
if over_gen then
  redis.call("ZADD", orphans, now, int(over_gen))
end
if before.gen then
  if tonumber(ARGV[10]) > 0 then
    redis.call("ZREM", trial, int(before.gen)) -- it has run all the while, so it did not crash
  end
  over(before, now)
  unwatch(id)
end
redis.call("HDEL", suspects, id)

at_least("gen", ARGV[9])
at_least("order", math.max(tonumber(ARGV[10]), tonumber(ARGV[13])))
local gen, order, raised = rise("gen"), 0, false
if release ~= "" then
  if ARGV[10] == "0" and drains_all(release) then
    absent(release)
  end
  local numbered = tonumber(string.match(redis.call("HGET", releases, release) or "", "^%d+") or "")
  order = math.max(numbered or tonumber(ARGV[10]), tonumber(ARGV[13]))
  if order == 0 then
    order = rise("order")
  end
  raised = numbered and order > numbered
  if raised then
    raise(release, order)
  end
  redis.call("HSET", releases, release, int(order) .. " 0")
end
-- A process that comes back does what it was asked before. A new process with the same ID was not asked.
local what = ARGV[9] ~= "0" and asked_of(id, ARGV[9]) or before.resigned and int(before.gen) == ARGV[9] and "resign"
if what then
  ask(id, int(gen), what)
else
  redis.call("HDEL", asked, id)
end
member = pack({
  gen = gen, order = order, state = what == "drain" and "d" or "s", standby = ARGV[3] == "1", resigned = what == "resign",
  lead = ARGV[4], consume = ARGV[5], release = release,
})
redis.call("HSET", members, id, member)
remember(id, ARGV[11], had)
redis.call("HSET", details, id, ARGV[7])
redis.call("ZADD", instances, now + tonumber(ARGV[2]), id)
record(events, cap_events, "event", "joined", "instance", id, "release", release, "generation", int(gen), unpack(given("host", host(id))))
if before.gen then
  if before.release ~= release and not remains(before.release) then
    absent(before.release)
  end
  hasten()
end
if before.gen or raised then
  elect()
end
return { int(gen), int(order), unpack(view(id, member)) }
