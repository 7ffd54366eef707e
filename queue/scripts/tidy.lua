-- tidy.lua keeps what has no natural end bounded: kept tasks past their time, the dead over the cap, lanes that have
-- been empty, cancel requests nobody needs, names of deleted schedules, what retired ones were, keys whose waiters were
-- left behind. The leader calls it now and then.
--
-- KEYS[1] done zset  KEYS[2] dead zset  KEYS[3] tasks hash  KEYS[4] lanes hash  KEYS[5] meta hash
-- KEYS[6] cancel hash  KEYS[7] active hash  KEYS[8] held zset  KEYS[9] watch zset
-- KEYS[10] schedules hash  KEYS[11] changed zset  KEYS[12] .. due sets
-- the last but one: retired hash  the last: retirements zset
-- ARGV[1] cap of done  [2] cap of dead  [3] most to remove at once  [4] how long a lane is kept while empty (ms)
-- ARGV[5] wake channel  [6] how long a deleted schedule is still named (ms: versions are at least the clock)
-- ARGV[7] n lanes, then their names, then how long a request to cancel is kept, and a retired schedule (ms)
-- Returns {removed, lanes removed}. O(removed * log(n) + lanes).
local done, dead, tasks, lanes, meta, cancel, active, held, watch, schedules, changed = unpack(KEYS, 1, 11)
redis.call("ZREM", watch, nobody) -- a first write that takes no memory: the others then pass at maxmemory
local most = math.min(tonumber(ARGV[3]), chunk)

local function shrink(set, old)
  remove_last("ZREM", set, old)
  remove_last("HDEL", tasks, old)
  return #old
end
local past = shrink(done, redis.call("ZRANGEBYSCORE", done, "-inf", now, "LIMIT", 0, most)) -- the first of them
local removed = past
for _, kept in ipairs({ { done, tonumber(ARGV[1]), past }, { dead, tonumber(ARGV[2]), 0 } }) do
  local set, cap, from = unpack(kept)
  local over = redis.call("ZCARD", set) - from - cap
  if over > 0 then
    removed = removed + shrink(set, redis.call("ZRANGE", set, from, from + math.min(over, most) - 1))
  end
end

-- turn is where to begin in a list of n, of which each call looks at a hundred.
local function turn(n)
  return n > 100 and math.floor(now / 1000) * 97 % n or 0
end

local gone, used, declared = {}, {}, {}
local waiting = redis.call("ZCARD", held)
for i = 1, tonumber(ARGV[7]) do
  local name, key = ARGV[7 + i], KEYS[11 + i]
  declared[key] = true
  local since = num(redis.call("HGET", lanes, name))
  if redis.call("EXISTS", key) == 1 then
    used[#used + 1], used[#used + 2] = name, int(now)
  elseif since and now - since > tonumber(ARGV[4]) and waiting == 0 then
    gone[#gone + 1] = name
  end
end
many("HSET", lanes, used)
if #gone > 0 then
  many("HDEL", lanes, gone)
  lanes_changed(meta)
end

-- A deleted schedule stays named for those who read what changed since they last looked.
local behind = (num(redis.call("HGET", meta, "schedules")) or 0) - tonumber(ARGV[6])
local n_old = behind > 0 and redis.call("ZCOUNT", changed, "-inf", int(behind)) or 0
local old = n_old > 0 and redis.call("ZRANGE", changed, turn(n_old), math.min(turn(n_old) + 99, n_old - 1)) or {}
for _, name in ipairs(old) do
  if redis.call("HEXISTS", schedules, name) == 0 then
    redis.call("ZREM", changed, name)
  end
end

-- What was retired long ago does not come back.
local retired, retirements = unpack(KEYS, #KEYS - 1, #KEYS)
local forgotten = redis.call("ZRANGEBYSCORE", retirements, "-inf", int(now - tonumber(ARGV[#ARGV])), "LIMIT", 0, 100)
many("ZREM", retirements, forgotten)
many("HDEL", retired, forgotten)

local requests = redis.call("HGETALL", cancel)
for i = 1, #requests, 2 do
  local asked = tonumber(string.match(requests[i + 1], "^%d+ (%d+)") or 0)
  if now - asked > tonumber(ARGV[#ARGV - 1]) then -- what it was for has ended, or was taken back
    redis.call("HDEL", cancel, requests[i])
  end
end

-- A key that has room has no waiters, unless a call that ended one of its runs did not know their lanes, or many of a
-- lane that nobody reads lie before them. One look a key, however many wait for it.
local keys, low = {}, "-"
local first = redis.call("ZRANGE", held, turn(waiting), turn(waiting))[1]
while first and #keys < 100 do
  local key = string.match(first, "^([^\31]*)")
  keys[#keys + 1] = key
  low = select(2, held_range(key))
  first = redis.call("ZRANGEBYLEX", held, low, "+", "LIMIT", 0, 1)[1]
end
if turn_over(tasks, active, held, keys, declared) then
  wake(watch, ARGV[5], now)
end
return { removed, #gone }
