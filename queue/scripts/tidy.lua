-- tidy.lua keeps what has no natural end bounded: kept tasks past their time, the dead over the cap, lanes that have
-- been empty, cancel requests nobody needs, keys whose waiters were left behind. The leader calls it now and then.
--
-- KEYS[1] done zset  KEYS[2] dead zset  KEYS[3] tasks hash  KEYS[4] lanes hash  KEYS[5] meta hash
-- KEYS[6] cancel hash  KEYS[7] active hash  KEYS[8] held zset  KEYS[9] .. due sets
-- ARGV[1] cap of done  [2] cap of dead  [3] most to remove at once  [4] lane's age before it may go (ms)
-- ARGV[5] n lanes, then their names
-- Returns {removed, lanes removed}. O(removed * log(n) + lanes).
local done, dead, tasks, lanes, meta, cancel, active, held = unpack(KEYS, 1, 8)
local most = math.min(tonumber(ARGV[3]), chunk)

local function shrink(set, old)
  many("ZREM", set, old)
  many("HDEL", tasks, old)
  return #old
end
local removed = shrink(done, redis.call("ZRANGEBYSCORE", done, "-inf", now, "LIMIT", 0, most))
for set, cap in pairs({ [done] = tonumber(ARGV[1]), [dead] = tonumber(ARGV[2]) }) do
  local over = redis.call("ZCARD", set) - cap
  if over > 0 then
    removed = removed + shrink(set, redis.call("ZRANGE", set, 0, math.min(over, most) - 1))
  end
end

local gone, declared = 0, {}
local n = tonumber(ARGV[5])
for i = 1, n do
  local name, key = ARGV[5 + i], KEYS[8 + i]
  declared[key] = true
  local since = tonumber(redis.call("HGET", lanes, name) or now)
  if now - since > tonumber(ARGV[4]) and redis.call("EXISTS", key) == 0 and redis.call("EXISTS", held) == 0 then
    redis.call("HDEL", lanes, name)
    gone = gone + 1
  end
end
if gone > 0 then
  redis.call("HINCRBY", meta, "lanes", 1)
end

local requests = redis.call("HGETALL", cancel)
for i = 1, #requests, 2 do
  local asked = tonumber(string.match(requests[i + 1], "^%d+ (%d+)") or 0)
  if now - asked > 60000 then
    redis.call("HDEL", cancel, requests[i])
  end
end

-- A key that nobody runs has no waiters, unless whoever ended its last run did not know the waiter's lane.
for _, member in ipairs(redis.call("ZRANGE", held, 0, 99)) do
  local key = string.match(member, "^([^\31]*)")
  if not redis.call("HGET", active, "k:" .. key) then
    unhold(held, key, declared)
  end
end
return { removed, gone }
