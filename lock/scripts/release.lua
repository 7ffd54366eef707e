-- release.lua gives a lock back, if it is still the caller's, and wakes a waiter.
--
-- KEYS[1] lock  string  see acquire.lua
-- KEYS[2] wait  zset    see lib_line.lua
-- ARGV[1] token  [2] no caller may have it before this time (ms), or 0  [3] channel of the lock
-- ARGV[4] 1: wake no waiter
-- Returns 1, or 0 if it was not the caller's. O(log waiters).
local lock, wait = KEYS[1], KEYS[2]
if redis.call("GET", lock) ~= ARGV[1] then
  return 0
end
local left = tonumber(ARGV[2]) - now
if left > 0 then
  redis.call("PEXPIRE", lock, int(left)) -- first: at maxmemory Redis would refuse a SET that came before
  redis.call("SET", lock, "", "KEEPTTL")
else
  redis.call("DEL", lock)
end
if ARGV[4] ~= "1" then
  wake(wait, ARGV[3]) -- also if the lock is kept: the waiter that is woken learns for how long
end
return 1
