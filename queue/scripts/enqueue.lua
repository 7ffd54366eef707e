-- enqueue.lua adds tasks to their due sets. All of the batch is looked at before anything is written, and the first
-- write is one that Redis refuses at maxmemory: a batch is never half there.
--
-- KEYS[1] tasks   hash  task -> record
-- KEYS[2] lanes   hash  lane -> first used (unix ms)
-- KEYS[3] meta    hash
-- KEYS[4] watch   zset  see lib_wake.lua
-- KEYS[5] ..      the due sets, then the unique keys (strings that expire)
--
-- ARGV[1] wake channel  [2] "1": look for IDs that exist  [3] n lanes, then their names
-- then n tasks, then for each: id, lane, due ("+ms" from now, or unix ms), record, and its unique key's number or 0
-- then for each unique key: its window in ms
--
-- Returns {now, n added, then for each one refused: its index from 0, "id" or "unique", the ID that stands}.
-- O(n * log(due)).
local tasks, lanes, meta, watch, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1]
local look = ARGV[2] == "1"
local n_lanes = tonumber(ARGV[3])
local n = tonumber(ARGV[4 + n_lanes])
local base = 4 + n_lanes
local windows = base + 5 * n

local exists = {}
if look then
  for from = 1, n, chunk do
    local ids = {}
    for i = from, math.min(from + chunk - 1, n) do
      ids[#ids + 1] = ARGV[base + 5 * i - 4]
    end
    for i, found in ipairs(redis.call("HMGET", tasks, unpack(ids))) do
      exists[from + i - 1] = found
    end
  end
end

local refused, records, sets, used, uniques = {}, {}, {}, {}, {}
local seen, earliest, added = {}, nil, 0
for i = 1, n do
  local p = base + 5 * i - 4
  local id, lane, due, unique = ARGV[p], tonumber(ARGV[p + 1]), ARGV[p + 2], tonumber(ARGV[p + 4])
  local key = unique > 0 and KEYS[4 + n_lanes + unique]
  local holder = key and (seen[key] or redis.call("GET", key))
  if exists[i] or look and seen[id] then
    refused[#refused + 1], refused[#refused + 2], refused[#refused + 3] = i - 1, "id", id
  elseif holder then
    refused[#refused + 1], refused[#refused + 2], refused[#refused + 3] = i - 1, "unique", holder
  else
    if look then
      seen[id] = id
    end
    if key then
      seen[key] = id
      uniques[#uniques + 1] = { key, id, ARGV[windows + unique] }
    end
    local at
    if string.byte(due) == 43 then
      at = now + tonumber(string.sub(due, 2))
      due = int(at)
    else
      at = tonumber(due)
    end
    if not earliest or at < earliest then
      earliest = at
    end
    local set = sets[lane]
    if not set then
      set = {}
      sets[lane] = set
      used[#used + 1] = ARGV[3 + lane]
    end
    set[#set + 1], set[#set + 2] = due, id
    records[#records + 1], records[#records + 2] = id, ARGV[p + 3]
    added = added + 1
  end
end

if added > 0 then
  many("HSET", tasks, records)
  for lane, set in pairs(sets) do
    many("ZADD", KEYS[4 + lane], set)
  end
  for _, unique in ipairs(uniques) do
    redis.call("SET", unique[1], unique[2], "PX", unique[3])
  end
  lanes_known(lanes, meta, channel, used)
  wake(watch, channel, earliest)
end
return { now, added, unpack(refused) }
