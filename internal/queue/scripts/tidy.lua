-- tidy.lua bounds the records that would otherwise grow without end. It removes kept tasks past their time, dead and done
-- tasks over their caps, lanes that stayed empty, old requests to cancel, names of deleted schedules, and records and
-- revisions of those that are long gone. It also looks for tasks that still wait for a key that has room. The leader calls it now and then.
--
-- KEYS[1] done zset  KEYS[2] dead zset  KEYS[3] tasks hash  KEYS[4] lanes hash  KEYS[5] meta hash
-- KEYS[6] cancel hash  KEYS[7] active hash  KEYS[8] held zset  KEYS[9] watch zset
-- KEYS[10] schedules hash  KEYS[11] changed zset  KEYS[12] .. due sets
-- the last four: revisions hash, retired hash, retirements zset, pauses hash
-- ARGV[1] cap of done  [2] cap of dead  [3] most to remove at once  [4] how long a lane is kept while empty (ms)
-- ARGV[5] wake channel
-- ARGV[6] n lanes, then their names, then how long a request to cancel is kept, and a schedule that is gone (ms)
-- Returns {removed, lanes removed}. O(removed * log(n) + lanes + 2,000 tasks that wait for a key).
local done, dead, tasks, lanes, meta, cancel, active, held, watch, schedules, changed = unpack(KEYS, 1, 11)
redis.call("ZREM", watch, nobody) -- a first write that takes no memory: the others then pass at maxmemory
local most = math.min(tonumber(ARGV[3]), chunk)

local function shrink(set, old)
  remove_last("ZREM", set, old)
  remove_last("HDEL", tasks, old)
  return #old
end
local past = shrink(done, redis.call("ZRANGEBYSCORE", done, "-inf", now, "LIMIT", 0, most)) -- those past their time
local removed = past
for _, kept in ipairs({ { done, tonumber(ARGV[1]), past }, { dead, tonumber(ARGV[2]), 0 } }) do
  local set, cap, from = unpack(kept)
  local over = redis.call("ZCARD", set) - from - cap
  if over > 0 then
    removed = removed + shrink(set, redis.call("ZRANGE", set, from, from + math.min(over, most) - 1))
  end
end

-- turn returns where to begin in a list of n. Each call looks at a hundred entries, and begins elsewhere each second, so
-- that all have their turn.
local function turn(n)
  return n > 100 and math.floor(now / 1000) * 97 % n or 0
end

local gone, used, declared = {}, {}, {}
local waiting = redis.call("ZCARD", held)

-- awaited reports whether a task that waits for its key goes back to a due set. If too many wait to look at each, it says yes.
local sets
local function awaited(key)
  if waiting > chunk then
    return true
  end
  if not sets then
    sets = {}
    for _, member in ipairs(redis.call("ZRANGE", held, 0, -1)) do
      sets[string.match(member, "^[^\31]*\31[^\31]*\31([^\31]*)") or ""] = true
    end
  end
  return sets[key]
end

for i = 1, tonumber(ARGV[6]) do
  local name, key = ARGV[6 + i], KEYS[11 + i]
  declared[key] = true
  local since, by = string.match(redis.call("HGET", lanes, name) or "", "^(%d+)(.*)$")
  since = num(since)
  if redis.call("EXISTS", key) == 1 then
    used[#used + 1], used[#used + 2] = name, int(now) .. (by or "")
  elseif since and now - since > tonumber(ARGV[4]) and not awaited(key) then
    gone[#gone + 1] = name
  end
end
many("HSET", lanes, used)
if #gone > 0 then
  many("HDEL", lanes, gone)
  lanes_changed(meta)
end

-- A deleted schedule stays in changed for a time, so that those who read the changes see it. Versions are at least the clock.
local behind = (num(redis.call("HGET", meta, "schedules")) or 0) - tonumber(ARGV[#ARGV])
local n_old = behind > 0 and redis.call("ZCOUNT", changed, "-inf", int(behind)) or 0
local old = n_old > 0 and redis.call("ZRANGE", changed, turn(n_old), math.min(turn(n_old) + 99, n_old - 1)) or {}
for _, name in ipairs(old) do
  if redis.call("HEXISTS", schedules, name) == 0 then
    redis.call("ZREM", changed, name)
  end
end

-- Forget schedules that were retired or deleted long ago, and what they said: they cannot come back as they were.
local revisions, retired, retirements, pauses = unpack(KEYS, #KEYS - 3, #KEYS)
local forgotten = redis.call("ZRANGEBYSCORE", retirements, "-inf", int(now - tonumber(ARGV[#ARGV])), "LIMIT", 0, 100)
many("ZREM", retirements, forgotten)
many("HDEL", retired, forgotten)
many("HDEL", revisions, forgotten)
many("HDEL", pauses, forgotten)

local requests = redis.call("HGETALL", cancel)
for i = 1, #requests, 2 do
  local asked = tonumber(string.match(requests[i + 1], "^%d+ (%d+)") or 0)
  if now - asked > tonumber(ARGV[#ARGV - 1]) then -- its run has ended, or was recovered
    redis.call("HDEL", cancel, requests[i])
  end
end

-- No task waits for a key that has room, with two exceptions: the call that ended a run of the key did not know the task's
-- lane, or many tasks of a lane that no instance reads wait before it. Look once at each key, however many tasks wait.
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
