-- extend.lua keeps a lock, if it is still the caller's.
--
-- KEYS[1] lock   string  see acquire.lua
-- KEYS[2] fence  string  see acquire.lua
-- ARGV[1] token  [2] ttl (ms)  [3] the lock may not end before this time (ms), or 0
-- ARGV[4] the least that the fence must be, or 0
-- ARGV[5] 1: take the lock if it is free. For one node of several, which lost it in a restart.
-- Returns {1, now} kept; {2, now} it was free, and was taken; {0, now} it is not the caller's. O(1).
local lock, fence = KEYS[1], KEYS[2]
local px = int(math.max(tonumber(ARGV[2]), tonumber(ARGV[3]) - now))
local holder, kept = redis.call("GET", lock), 0
if holder == ARGV[1] then
  redis.call("PEXPIRE", lock, px)
  kept = 1
elseif not holder and ARGV[5] == "1" then
  redis.call("SET", lock, ARGV[1], "PX", px)
  kept = 2
end
if kept > 0 then
  if tonumber(ARGV[4]) > tonumber(redis.call("GET", fence) or 0) then
    redis.call("SET", fence, ARGV[4], "PX", 86400000 + px)
  else
    redis.call("PEXPIRE", fence, 86400000 + px)
  end
end
return { kept, now }
