-- errand_take.lua gives the caller the oldest errand that nobody works on: one that waits, or whose worker was silent for too
-- long. The turn of the errand rises, so the worker before can note nothing more.
--
-- KEYS[1] errands  hash  id -> record (see lib_errand.lua)
-- ARGV[1] how long a worker may be silent, ms  [2] how long the hash is kept after this call, ms
-- Returns {now}, or {now, id, record}. O(errands).
local hash, silence = KEYS[1], tonumber(ARGV[1])
local oldest
for _, e in ipairs((errands(hash))) do
  local free = e.state == "waiting" or e.state == "running" and math.abs(now - e.at) >= silence -- the clock may have been set back
  if free and (not oldest or e.begun < oldest.begun) then
    oldest = e
  end
end
if not oldest then
  return { now }
end
-- A failover may lose a turn that was given, so the same number is not given again.
oldest.state, oldest.turn, oldest.at = "running", math.max(oldest.turn + 1, now), now
redis.call("HDEL", hash, nobody) -- passes at maxmemory, and then so does the rest
redis.call("HSET", hash, oldest.id, errand_text(oldest))
redis.call("PEXPIRE", hash, ARGV[2])
return { now, oldest.id, errand_text(oldest) }
