-- schedules.lua reads definitions and last runs, all at one moment. It is a script and not a MULTI, because at maxmemory
-- Redis refuses even a MULTI that only reads.
--
-- KEYS[1] schedules hash  schedule -> definition
-- KEYS[2] last      hash  schedule -> "rev slot runs anchor paused"
-- KEYS[3] behind    hash  schedule -> missed slots that are still to be pushed
-- KEYS[4] pauses    hash  schedule -> the note on its pause
-- ARGV    schedules, at most chunk
-- Returns for each: definition or "", then for each: last run or "", then for each: the slots that it is behind with, or
-- "", then for each: the note on its pause, or "". O(n).
local reply = redis.call("HMGET", KEYS[1], unpack(ARGV))
for key = 2, 4 do
  for _, value in ipairs(redis.call("HMGET", KEYS[key], unpack(ARGV))) do
    reply[#reply + 1] = value
  end
end
for i = 1, #reply do
  reply[i] = reply[i] or ""
end
return reply
