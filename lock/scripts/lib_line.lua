-- lib_line.lua: the line of the waiters of a lock, and how the first of them is woken.
--
-- A member of wait is "<line> <waiter>": a connection that listens, and a waiter behind it. Its score is when that waiter
-- will look by itself, whether or not it is woken (ms).

-- most is how many waiters are tried until one listens. The other dead waiters are found by their scores.
local most = 8

-- wake tells the first waiter to look, and takes it out of the line. A waiter whose connection no longer listens is
-- passed over. (On a Redis Cluster a listener on another node is not counted: at worst a few are woken instead of one.)
local function wake(wait, channel)
  for _ = 1, most do
    local first = redis.call("ZPOPMIN", wait)[1]
    if not first then
      return
    end
    local line, waiter = string.match(first, "^(%S+) (%S+)$")
    local heard = line and redis.pcall("PUBLISH", channel .. line, waiter)
    if type(heard) == "table" or heard and heard > 0 then -- without the right to publish, all look by themselves
      return
    end
  end
end

-- queue_up puts a waiter in line, and returns in how many ms it should look by itself: when the lease that it sees ends,
-- but a step after the last in line, so that a crowd does not look at once; and at most a ttl later than the lease.
local function queue_up(wait, member, left, ttl, step)
  redis.call("ZREMRANGEBYSCORE", wait, "-inf", int(now - ttl)) -- these never came back
  redis.call("ZREM", wait, member)
  local last = tonumber(redis.call("ZRANGE", wait, -1, -1, "WITHSCORES")[2] or 0)
  local at = math.min(math.max(now + left, last + step), now + left + ttl)
  redis.call("ZADD", wait, int(at), member)
  redis.call("PEXPIREAT", wait, int(math.max(at, last) + ttl))
  return at - now
end
