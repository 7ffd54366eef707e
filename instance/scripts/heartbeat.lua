-- heartbeat.lua renews the caller's lease, drops instances whose lease ran out, elects if the leader is gone, and returns
-- the view.
--
-- KEYS[1..15] see lib_elect.lua
-- KEYS[16] cancel hash  task, "t:task" or "k:key" -> "fence asked-at reason"
-- ARGV[1] id  [2] generation  [3] lease ms  [4] how late a watcher may be before others look (ms)
-- ARGV[5] the clock of Redis when it last answered the caller a heartbeat, or 0
-- ARGV[6] the name of the lanes that the caller reads, if it believes that it watches; else ""
-- ARGV[7] how late the monitor may be before another takes its place  [8] how long after a due time the monitor looks
-- ARGV[9] the time between two looks while nobody watches (all ms)
-- Returns {view..., the rest of the leader's lease (ms, -1 without a leader), overslept 0|1, whether the caller's channel
--   has a listener (1, 0; -1: Redis does not tell), in how many ms to look (-1: the caller is not the monitor), the order of
--   its release, n orphans, orphans..., cancel requests as field, value...}.
-- Overslept: a watcher is late, or the caller believes that it watches and does not. The caller must look for due tasks.
-- Monitor: the one candidate that looks whether the leader lives, see look.lua.
-- Orphans go to the leader, and to the caller whose heartbeat found lost instances.
-- Errors: FENCED (the lease had run out, or another generation took the ID). O(1) while nothing changes.
local cancel = KEYS[16]
local id = ARGV[1]
local alive, member = live(instances, members, id, ARGV[2])
if not alive then
  return redis.error_reply("FENCED instance " .. id)
end
local had = redis.call("ZSCORE", instances, id) - tonumber(ARGV[3])
redis.call("ZADD", instances, now + tonumber(ARGV[3]), id)
remember(id, ARGV[5], had)
local proves = redis.call("ZSCORE", trial, ARGV[2])
if proves and tonumber(proves) <= now and parse(member).state == "r" then
  redis.call("ZREM", trial, ARGV[2])
  redis.call("HDEL", strikes, parse(member).release)
end

-- The caller lives: if it was suspected, that was wrong. An entry is written only when it changes.
local listens, trusted = listeners(id), suspicion(id, ARGV[2])
local wronged, heard = trusted.since > 0, (listens or 0) > 0
if wronged then
  record(events, cap_events, "event", "suspected wrongly", "instance", id, "release", parse(member).release,
    "ms", int(now - trusted.since))
  trusted.wrong, trusted.at, trusted.since = trusted.wrong + 1, now, 0
end
if wronged or trusted.listens ~= heard then
  trusted.listens = heard
  suspect(id, ARGV[2], trusted)
end

local found = sweep()
local lead = redis.call("HMGET", leader, "id", "gen", "order", "consume", "open", "epoch", "monitor")
local leads = lead[1] and generation(redis.call("HGET", members, lead[1]))
if lead[1] == id then
  -- If the entry is not as onbeat wrote it, another program has damaged it. Then elect again, with the gate shut.
  local m = parse(redis.call("HGET", members, id))
  if lead[2] ~= int(m.gen) or lead[3] ~= int(m.order) or lead[4] ~= m.consume or not string.find(lead[5] or "", "^[01]$")
    or not num(lead[6]) then
    redis.call("HSET", leader, "id", "", "gen", "0", "open", "0", "back", "")
    record(events, cap_events, "event", "set aside", "key", "leader", "instance", id)
    elect()
  end
elseif not leads or int(leads) ~= lead[2] or not redis.call("ZSCORE", instances, lead[1]) then
  elect() -- there is no leader, or the entry was damaged and names no live instance
elseif wronged then
  elect() -- by its rank it leads again
end

-- stands_by returns in how many ms the caller is to look whether the leader lives, or -1 if it is not the monitor. It becomes
-- the monitor if there is none, if that one leads by now, or if it is late.
local function stands_by(leader_id, m)
  local holder, of, planned = string.match(lead[7] or "", "^(%S+) (%d+) (%d+)$")
  planned = num(planned)
  if leader_id == "" or leader_id == id or not may_lead(m) or not listens then
    return -1
  end
  local lease = tonumber(ARGV[3])
  local free = not planned or holder == leader_id or planned + tonumber(ARGV[7]) < now or planned > now + 2 * lease
  local mine = holder == id and of == ARGV[2]
  if mine and not heard then
    relieve(id) -- it would not notice that the leader's process died: one that hears may
  end
  if not heard or not (mine or free) then
    return -1
  end
  local first = tonumber(redis.call("ZRANGE", watch, 0, 0, "WITHSCORES")[2])
  local wait = first and math.min(math.max(first + tonumber(ARGV[8]) - now, 0), lease) or tonumber(ARGV[9])
  redis.call("HSET", leader, "monitor", id .. " " .. ARGV[2] .. " " .. int(now + math.min(wait, lease / 5)))
  return wait
end

local reply = view(id, redis.call("HGET", members, id) or member) -- elect may have ended its probation
local ends = redis.call("ZSCORE", instances, reply[2])
reply[#reply + 1] = ends and math.max(tonumber(ends) - now, 0) or -1
local overslept = redis.call("ZCOUNT", watch, "-inf", int(now - tonumber(ARGV[4]))) > 0
  or ARGV[6] ~= "" and not redis.call("ZSCORE", watch, id .. "\31" .. ARGV[6])
reply[#reply + 1] = overslept and 1 or 0
reply[#reply + 1] = listens and (heard and 1 or 0) or -1
local own = parse(redis.call("HGET", members, id))
reply[#reply + 1] = int(stands_by(reply[2], own))
reply[#reply + 1] = int(own.order or 0)
local lost = {}
if found or reply[2] == id then
  -- Return a few at a time, and others each second: some may hold tasks that only another release can read.
  local from = math.floor(now / 1000) % math.max(redis.call("ZCARD", orphans) - 15, 1)
  lost = redis.call("ZRANGE", orphans, from, from + 15)
end
reply[#reply + 1] = #lost
for _, gen in ipairs(lost) do
  reply[#reply + 1] = gen
end
for _, part in ipairs(redis.call("HGETALL", cancel)) do
  reply[#reply + 1] = part
end
return reply
