-- schedules.lua reads definitions and last runs of one moment. It is a script and no MULTI because Redis refuses even
-- reads in a MULTI while it is at maxmemory.
--
-- KEYS[1] schedules hash  schedule -> definition
-- KEYS[2] last      hash  schedule -> "rev slot runs anchor paused"
-- KEYS[3] behind    hash  schedule -> what was missed and is still to be pushed
-- ARGV    schedules, at most chunk
-- Returns for each: definition or "", then for each: last run or "", then for each: what it is behind with
-- or "". O(n).
local reply = redis.call("HMGET", KEYS[1], unpack(ARGV))
for key = 2, 3 do
  for _, value in ipairs(redis.call("HMGET", KEYS[key], unpack(ARGV))) do
    reply[#reply + 1] = value
  end
end
for i = 1, #reply do
  reply[i] = reply[i] or ""
end
return reply
