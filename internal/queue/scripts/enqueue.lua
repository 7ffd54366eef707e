-- enqueue.lua adds tasks to their due sets. It checks the whole batch before it writes, and Redis refuses its first write
-- at maxmemory. So a batch is added whole or not at all.
--
-- KEYS[1] tasks   hash  task -> record
-- KEYS[2] lanes   hash  lane -> first used (unix ms), and by whom
-- KEYS[3] meta    hash
-- KEYS[4] watch   zset  see lib_wake.lua
-- KEYS[5] ..      the due sets, then the unique keys (strings that expire); then the zsets dead and done, if tasks are added again
--
-- ARGV[1] wake channel  [2] "1": look for IDs that exist; "2": add again what has ended (see below)  [3] earliest due time (unix ms), or "" for none
--     [4] least delay in ms, or "" if all due times are given  [5] who adds them, or ""  [6] n lanes, then their names
-- then n series of tasks of one lane, then for each: number of the lane, how many tasks
-- then n tasks, for each: due ("+ms" from now, or unix ms), id; then for each again: id, record
-- then n unique keys; if there are any: for each task its unique key's number or 0, then for each key its window in ms
--
-- Returns {now, n added, then for each refused task: its index from 0, "id" or "unique" and the ID of the existing task,
-- or "lane" and the lane, if there are too many lanes}. Errors: PARTITIONS.
--
-- Tasks that are added again replace the task that is dead or kept under their ID, and a unique key that this ID holds refuses
-- nothing: its window begins anew. A task that waits or runs refuses the new one, and its unique key stays as it is.
-- O(n * log(due)).
local tasks, lanes, meta, watch, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1]
local again = ARGV[2] == "2"
local look, earliest, delay = again or ARGV[2] == "1", tonumber(ARGV[3]), tonumber(ARGV[4])
local n_lanes = tonumber(ARGV[6])
local runs = 7 + n_lanes -- where the series begin in ARGV, as scores and records below
local n_runs = tonumber(ARGV[runs])
local scores = runs + 2 * n_runs + 2
local n = tonumber(ARGV[scores - 1])
local records = scores + 2 * n
local uniques = records + 2 * n + 1
local n_uniques = tonumber(ARGV[uniques - 1])

if delay then
  earliest = math.min(earliest or now + delay, now + delay)
  local due = {} -- delay -> due time: many tasks of a batch have the same delay
  for p = scores, records - 2, 2 do
    local text = ARGV[p]
    if string.byte(text) == 43 then
      due[text] = due[text] or int(now + tonumber(string.sub(text, 2)))
      ARGV[p] = due[text]
    end
  end
end

local refused, out = {}, {} -- the refusals of the reply; task number -> true if it is refused
local taken, takes = {}, {} -- unique key -> the task of this batch that takes it; number of the key -> true if taken
local replaced, had = {}, {} -- the IDs of the tasks that have ended and are replaced; task number -> the record of that task
local dead, done = KEYS[#KEYS - 1], KEYS[#KEYS] -- if tasks are added again
local function refuse(i, by, id)
  out[i] = true
  refused[#refused + 1], refused[#refused + 2], refused[#refused + 3] = i - 1, by, id
end

-- known returns the records of the tasks numbered from..to: false for an ID that does not exist.
local function known(from, to)
  local ids = {}
  for i = from, to do
    ids[#ids + 1] = ARGV[scores + 2 * i - 1]
  end
  return redis.call("HMGET", tasks, unpack(ids))
end

-- shut_lanes returns whether any lane of the batch is new, and task number -> lane for the tasks of lanes that are too many, or
-- nil if there are none. An instance reads all lanes of its types with each call, so without a limit a producer could hold up
-- every instance with new queue names. The lanes of the dispatcher's own types, which are few, always have room.
local most_lanes = 2000
local function shut_lanes()
  local known, fresh = redis.call("HMGET", lanes, unpack(ARGV, 7, 6 + n_lanes)), false
  for lane = 1, n_lanes do
    fresh = fresh or not known[lane]
  end
  if not fresh then
    return false
  end
  local used = redis.call("HLEN", lanes)
  if used == 0 then -- a split namespace has no lane of its own, so only a new lane asks
    local split = redis.call("HGET", meta, "partitions")
    if split then
      error("PARTITIONS " .. split, 0)
    end
  end
  local shut, new, room = nil, {}, most_lanes - used
  if room >= n_lanes then
    return true
  end
  for lane = 1, n_lanes do
    if not known[lane] and not own({ ARGV[6 + lane] }) then
      room = room - 1
      new[lane] = room < 0
    end
  end
  local i = 1
  for r = 1, n_runs do
    local lane = tonumber(ARGV[runs + 2 * r - 1])
    for _ = 1, tonumber(ARGV[runs + 2 * r]) do
      if new[lane] then
        shut = shut or {}
        shut[i] = ARGV[6 + lane]
      end
      i = i + 1
    end
  end
  return true, shut
end
local fresh, shut = shut_lanes()

-- holds returns the task that holds a unique key, or false. A key of another type, which another program has made, counts
-- as absent, and is overwritten.
local function holds(key)
  local reply = redis.pcall("GET", key)
  if type(reply) == "table" and reply.err then
    if not string.find(reply.err, "WRONGTYPE", 1, true) then
      error(reply)
    end
    return false
  end
  return reply
end

if look or n_uniques > 0 or shut then
  local seen, exists = {}, {}
  for i = 1, n do
    if look and i % chunk == 1 then
      exists = known(i, math.min(i + chunk - 1, n))
    end
    local id = ARGV[scores + 2 * i - 1]
    local unique = n_uniques > 0 and tonumber(ARGV[uniques + i - 1]) or 0
    local key = unique > 0 and KEYS[4 + n_lanes + unique]
    local holder = key and (taken[key] or holds(key))
    local there = look and exists[(i - 1) % chunk + 1]
    local ended = again and there and not seen[id] and (redis.call("ZSCORE", dead, id) or redis.call("ZSCORE", done, id))
    if shut and shut[i] then
      refuse(i, "lane", shut[i])
    elseif look and (seen[id] or there and not ended) then
      refuse(i, "id", id)
    elseif holder and not (again and holder == id) then
      refuse(i, "unique", holder)
    else
      seen[id] = true
      if key then
        taken[key], takes[unique] = id, holder or true
      end
      if ended then
        replaced[#replaced + 1], had[i] = id, there
      end
    end
  end
end

-- put writes the pairs of the tasks numbered from..to, without those that are refused, and reports whether there were any.
-- Pairs is where the pairs begin in ARGV.
local function put(command, key, pairs, from, to)
  if #refused == 0 then
    for i = from, to, chunk / 2 do
      redis.call(command, key, unpack(ARGV, pairs + 2 * i - 2, pairs + 2 * math.min(i + chunk / 2 - 1, to) - 1))
    end
    return true
  end
  local list = {}
  for i = from, to do
    if not out[i] then
      list[#list + 1], list[#list + 2] = ARGV[pairs + 2 * i - 2], ARGV[pairs + 2 * i - 1]
    end
  end
  many(command, key, list)
  return #list > 0
end

-- take_back is the undo: it removes what was added, if Redis refuses a later write. A window that has begun anew stays so.
local function take_back()
  for i = 1, n do
    if had[i] then
      redis.pcall("HSET", tasks, ARGV[scores + 2 * i - 1], had[i])
    elseif not out[i] then
      redis.pcall("HDEL", tasks, ARGV[scores + 2 * i - 1])
    end
  end
  local i = 1
  for r = 1, n_runs do
    local set = KEYS[4 + tonumber(ARGV[runs + 2 * r - 1])]
    for _ = 1, tonumber(ARGV[runs + 2 * r]) do
      if not out[i] then
        redis.pcall("ZREM", set, ARGV[scores + 2 * i - 1])
      end
      i = i + 1
    end
  end
  for i = 1, n_uniques do
    if takes[i] == true then
      redis.pcall("DEL", KEYS[4 + n_lanes + i])
    end
  end
end

-- may_take_back reports whether the user has the rights that the undo needs. To ask is cheaper than to try. Before Redis 7 nothing
-- can be asked.
local function may_take_back()
  local allows = redis.acl_check_cmd
  return allows and allows("HDEL", tasks, nobody) and allows("ZREM", watch, nobody)
end

local added = n - #refused / 3
if added > 0 then
  if not may_take_back() then
    -- Try both before anything is added. The ZADD goes first: Redis refuses it at maxmemory.
    redis.call("ZADD", watch, "XX", 0, nobody)
    redis.call("HDEL", tasks, nobody)
    redis.call("ZREM", watch, nobody)
  end
  put("HSET", tasks, records, 1, n)
  undos[1] = take_back
  local used, from = {}, 1
  for r = 1, n_runs do
    local lane, count = tonumber(ARGV[runs + 2 * r - 1]), tonumber(ARGV[runs + 2 * r])
    if put("ZADD", KEYS[4 + lane], scores, from, from + count - 1) then
      used[#used + 1] = ARGV[6 + lane]
    end
    from = from + count
  end
  if fresh then
    lanes_known(lanes, meta, channel, used, ARGV[5])
  end
  wake(watch, channel, earliest, nil, nil, own(used))
  for i = 1, n_uniques do -- last, so that no refused task holds one
    local key = KEYS[4 + n_lanes + i]
    if takes[i] then
      redis.call("SET", key, taken[key], "PX", ARGV[uniques + n + i - 1])
    end
  end
  if again then
    remove_last("ZREM", dead, replaced)
    remove_last("ZREM", done, replaced)
  end
end
return { now, added, unpack(refused) }
