-- look.lua is called by the monitor: the one candidate that looks whether the leader lives. A leader that shows no sign of
-- life is suspected. Then another instance is elected in the same step, as if the leader had resigned. The suspect keeps its
-- claims until its lease ends. If it lives, its next heartbeat says so, and by its rank it leads again.
--
-- Signs of life are the leader's heartbeats, its cycles and its pushes. Without one it is suspected
--   if nobody listens to its channel, though somebody did at its last heartbeat, in looks over ARGV[9]: its process died
--   if it should have looked for due tasks ARGV[10] ago, and has shown no sign for as long: its process is frozen
--   if it does not watch for due tasks, because it is busy or was frozen while it took some, after ARGV[11]
-- Each of these times is doubled for each time that the leader was suspected wrongly lately, up to its lease.
--
-- KEYS[1..15] see lib_elect.lua
-- KEYS[16] running hash of the generation that leads, as the caller knows it
-- ARGV[1] id  [2] generation  [3] the generation that leads, as the caller knows it  [4] lease ms
-- From the caller's last look: ARGV[5] the signs of life  [6] since when they were the same
--   [7] since when nobody has listened to the leader's channel, or 0
-- ARGV[8] how long the caller has listened without a break (ms)
-- ARGV[9] how long nobody must listen  [10] how long a leader may owe a look  [11] how long one that does not watch may be
--   silent, if its lease is as long as the caller's  [12] how long the caller must have listened, so that it may judge by
--   listeners  [13] how late a look may be: after that, the caller's last look does not count, because the caller may have
--   been frozen itself  [14] how long after a due time to look  [15] the least time between two looks  [16] the time between
--   two looks at a busy leader (all ms)
-- Returns {view..., suspected 0|1, the signs of life, since when they are the same, since when nobody listens, or 0, how many
--   listen to the leader's channel, to the caller's (-1: Redis does not tell), how often the leader was suspected wrongly,
--   when to look next: unix ms, -1 when a heartbeat or a message says so, 0 never: the caller is not the monitor}.
-- Errors: FENCED. O(instances).
local id, gen = ARGV[1], ARGV[2]
if not live(instances, members, id, gen) then
  return redis.error_reply("FENCED instance " .. id)
end
sweep()
local member = redis.call("HGET", members, id)
local lead = redis.call("HMGET", leader, "id", "gen", "epoch", "sign", "monitor")
local holder, of, planned = string.match(lead[5] or "", "^(%S+) (%d+) (%d+)$")
local caller = suspicion(id, gen)
planned = num(planned)

local function reply(was, signs, since, alone, theirs, mine, wrong, next_look)
  local all = view(id, member)
  for _, value in ipairs({ was, signs, since, alone, theirs, mine, wrong, next_look }) do
    all[#all + 1] = value
  end
  return all
end
if not planned or holder ~= id or of ~= gen or not may_lead(parse(member)) or caller.since > 0
  or (lead[1] or "") == "" or lead[1] == id or not lead[2] or not lead[3] or not redis.call("ZSCORE", instances, lead[1]) then
  return reply(0, "", 0, 0, -1, -1, 0, 0)
end

local beat = tonumber(ARGV[4]) / 5
local function plan(at)
  redis.call("HSET", leader, "monitor", id .. " " .. gen .. " " .. int(at < 0 and now + beat or math.min(at, now + beat)))
  return at < 0 and -1 or int(at)
end

-- The signs of life, and since when they have been the same.
local known = lead[2] == ARGV[3]
local seq = known and redis.call("HGET", KEYS[16], "") or ""
local signs = table.concat({ lead[2], lead[3], redis.call("ZSCORE", instances, lead[1]), seq, lead[4] or "" }, " ")
local same = known and signs == ARGV[5] and now <= planned + tonumber(ARGV[13])
local since = same and num(ARGV[6]) or now
local them = suspicion(lead[1], lead[2])
local theirs, mine = listeners(lead[1]) or -1, listeners(id) or -1
local alone = 0
if them.listens and theirs == 0 and mine > 0 and tonumber(ARGV[8]) >= tonumber(ARGV[12]) then
  alone = same and tonumber(ARGV[7]) > 0 and tonumber(ARGV[7]) or now
end

-- When the leader, and when any instance, should look for due tasks.
local owed, first
local list = redis.call("ZRANGE", watch, 0, -1, "WITHSCORES")
for i = 1, #list, 2 do
  local at = tonumber(list[i + 1])
  first = first or at
  if watcher(list[i]) == lead[1] then
    owed = owed or at
  end
end

-- When the leader is to be suspected, if it shows no sign of life until then. Its heartbeats are as far apart as its own lease
-- says, which may be another than the caller's.
local about = redis.call("HGET", details, lead[1]) or ""
local lease = num(string.match(about, '"lease_ms":(%d+)')) or tonumber(ARGV[4])
local function patience(arg, times)
  return math.min(tonumber(ARGV[arg]) * (times or 1) * 2 ^ math.min(them.wrong, 20), lease)
end
local due, reason = math.huge, "silent"
if owed and owed <= now then
  due = math.max(since, owed) + patience(10)
elseif not owed then
  due = since + patience(11, lease / tonumber(ARGV[4]))
end
if alone > 0 and alone + patience(9) < due then
  due, reason = alone + patience(9), "no listener"
end

if known and due <= now then
  them.since = now
  suspect(lead[1], lead[2], them)
  record(events, cap_events, "event", "suspected", "instance", lead[1], "release",
    parse(redis.call("HGET", members, lead[1])).release, "by", id, "reason", reason, "ms", int(now - since),
    unpack(given("host", host(lead[1]))))
  elect()
  return reply(1, signs, since, alone, theirs, mine, them.wrong, 0)
end

local function busy()
  return redis.call("HLEN", KEYS[16]) > 1 -- one entry has the seq
end
local next_look = -1
if not known then
  next_look = now + 1 -- the caller learns by this reply who leads
elseif alone > 0 then
  next_look = due
elseif owed and owed <= now then
  next_look = math.min(math.max(due, now + 1), now + tonumber(ARGV[16]))
elseif not owed and busy() then
  next_look = now + tonumber(ARGV[16])
elseif first and first <= now + tonumber(ARGV[4]) then
  next_look = math.max(first + tonumber(ARGV[14]), now + tonumber(ARGV[15]))
end
return reply(0, signs, since, alone, theirs, mine, them.wrong, plan(next_look))
