-- acquire.lua takes a lock if it is free. If it is not, it puts the caller in line.
--
-- KEYS[1] lock   string  the token of the holder; "" while no caller may have it yet (AtLeastFor)
-- KEYS[2] fence  string  the fencing token of the last holder; kept for a day after it
-- KEYS[3] wait   zset    see lib_line.lua
-- ARGV[1] token  [2] how long to take it for (ms)  [3] ttl (ms)
-- ARGV[4] waiter, or "": do not wait  [5] step of the line (ms)
-- Returns {1, fence, now}; or {0, ms until the lease ends, ms after which to look again}.
-- O(log waiters). Asking again with the same token is safe: a lock that was taken stays taken.
--
-- The fence is at least the time in µs, so it rises even after Redis lost it, or let it expire.
local lock, fence, wait = KEYS[1], KEYS[2], KEYS[3]
local holder = redis.call("GET", lock)
if not holder then
  local next = math.max(tonumber(redis.call("GET", fence) or 0) + 1, clock[1] * 1000000 + clock[2])
  redis.call("SET", lock, ARGV[1], "PX", ARGV[2])
  redis.call("SET", fence, int(next), "PX", 86400000 + tonumber(ARGV[2]))
elseif holder == ARGV[1] then
  redis.call("PEXPIRE", lock, ARGV[2])
else
  local ttl, left = tonumber(ARGV[3]), redis.call("PTTL", lock)
  if left < 0 then
    left = ttl -- a user removed the expiry by hand
  end
  local look = left
  if ARGV[4] ~= "" then
    look = queue_up(wait, ARGV[4], left, ttl, tonumber(ARGV[5]))
  end
  return { 0, left, look }
end
if ARGV[4] ~= "" then
  redis.call("ZREM", wait, ARGV[4])
end
return { 1, redis.call("GET", fence), now }
