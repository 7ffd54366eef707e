-- raw_step.lua settles what a caller took before, and takes up to ARGV[1] due tasks from the head of the set, by rank,
-- with an in-flight entry for each.
--
-- KEYS[1] due zset, KEYS[2] tasks hash, KEYS[3] running zset
-- ARGV[1] most to take, ARGV[2] lease in ms, ARGV[3..] IDs to settle
-- Returns {ids, payloads, ms until the next is due}.
if #ARGV > 2 then
  redis.call("ZREM", KEYS[3], unpack(ARGV, 3))
  redis.call("HDEL", KEYS[2], unpack(ARGV, 3))
end
local want = tonumber(ARGV[1])
if want == 0 then
  return { {}, {}, 0 }
end
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local rows = redis.call("ZRANGE", KEYS[1], 0, want - 1, "WITHSCORES")
local ids, running, n = {}, {}, 0
local lease = string.format("%.0f", now + tonumber(ARGV[2]))
for i = 1, #rows, 2 do
  if tonumber(rows[i + 1]) > now then
    break
  end
  n = n + 1
  ids[n] = rows[i]
  running[2 * n - 1], running[2 * n] = lease, rows[i]
end
if n == 0 then
  return { {}, {}, rows[2] and tonumber(rows[2]) - now or 1000 }
end
redis.call("ZREMRANGEBYRANK", KEYS[1], 0, n - 1)
redis.call("ZADD", KEYS[3], unpack(running))
return { ids, redis.call("HMGET", KEYS[2], unpack(ids)), 0 }
