-- state.lua makes an instance ready (so that it can lead) or draining (it resigns), and elects in the same step. So there is
-- no moment without a leader while an instance could lead, and no moment in which an older instance still claims.
--
-- While a candidate of another release is ready, an instance of a release with strikes does not become ready at once. It is
-- on probation, counted from its registration: for a lease, and twice as long after each further strike, up to five minutes.
-- Otherwise a release that crashes in a loop would take the lead with each start, and lose it with each crash. The probation
-- ends with time (the caller asks again), or when no other instance can lead (see pardon).
--
-- KEYS[1..15] see lib_elect.lua
-- ARGV[1] id  [2] generation  [3] state: r or d. A draining instance stays draining: a late "ready" changes nothing.
-- ARGV[4] lease ms
-- Returns {in how many ms to ask again, or 0, view...}. Errors: FENCED. O(instances).
local id = ARGV[1]
local alive, member = live(instances, members, id, ARGV[2])
if not alive then
  return redis.error_reply("FENCED instance " .. id)
end
sweep()
local m = parse(redis.call("HGET", members, id) or member) -- sweep may have ended its probation

-- rival reports whether an instance of another release is ready and could lead, and is not suspected.
local function rival()
  local suspected = suspicions()
  for _, other in ipairs(living()) do
    local o = parse(redis.call("HGET", members, other))
    if o.state == "r" and not o.standby and o.release ~= m.release and not suspected(other, o) then
      return true
    end
  end
  return false
end

-- probation returns how much longer the caller is on probation (ms), or 0, and puts it on probation if need be.
local function probation()
  local n = tonumber(string.match(redis.call("HGET", strikes, m.release) or "", "^%d+") or 0)
  if n == 0 or m.standby or not rival() then
    return 0
  end
  local most = math.min(tonumber(ARGV[4]) * 2 ^ math.min(n - 1, 20), 300000)
  local before = redis.call("ZSCORE", trial, ARGV[2])
  local ends = math.min(tonumber(before) or m.gen + most, now + most)
  if ends <= now then
    return 0
  end
  redis.call("ZADD", trial, ends, ARGV[2])
  if not before then
    record(events, cap_events, "event", "on probation", "instance", id, "release", m.release, "strikes", int(n), "ms", int(ends - now))
  end
  return ends - now
end

local wait = 0
if m.state ~= ARGV[3] and m.state ~= "d" then
  wait = ARGV[3] == "r" and probation() or 0
  if wait == 0 then
    become(id, m, ARGV[3])
    if m.state == "d" then
      unwatch(id) -- a wake-up for it would be lost
      relieve(id)
    end
    elect()
  end
end
return { wait, unpack(view(id, pack(m))) }
