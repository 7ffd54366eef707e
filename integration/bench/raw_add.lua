-- raw_add.lua adds tasks, the shortest way there is.
--
-- KEYS[1] due zset, KEYS[2] tasks hash
-- ARGV: due, id for each task; then id, payload for each task
local n = #ARGV / 2
redis.call("ZADD", KEYS[1], unpack(ARGV, 1, n))
redis.call("HSET", KEYS[2], unpack(ARGV, n + 1))
return n / 2
