-- restock.lua puts tasks back into a due set that another program has overwritten: those that are in no other place. If the
-- list of lanes was lost, the leader calls it for lanes without tasks too.
--
-- KEYS[1] tasks hash  KEYS[2] dead zset  KEYS[3] done zset  KEYS[4] held zset  KEYS[5] watch zset  KEYS[6] meta hash
-- KEYS[7] lanes hash  KEYS[8] events stream  KEYS[9] members hash  KEYS[10] orphans zset  KEYS[11] due set
-- KEYS[12] .. running hashes of the generations
-- ARGV[1] wake channel  [2] cap of events  [3] the lane  [4] n generations, then their numbers
-- then n tasks, for each: id, key or "", due time (unix ms) or "" if the task becomes dead, its record as a dead task
--
-- Returns {how many are due again, how many died}, or {-1} if there is a generation that the caller did not name.
-- O(tasks * generations + waiters of their keys).
local tasks, dead, done, held, watch, meta, lanes, events, members, orphans, due_set = unpack(KEYS, 1, 11)
local n_gens = tonumber(ARGV[4])

if others(members, orphans, 5, n_gens) then
  return { -1 }
end

-- waits reports whether a task waits for its key. It reads the line of each key once.
local lines = {}
local function waits(id, key)
  if not lines[key] then
    lines[key] = {}
    for _, member in ipairs(redis.call("ZRANGEBYLEX", held, held_range(key))) do
      lines[key][string.match(member, "([^\31]*)$")] = true
    end
  end
  return lines[key][id]
end

-- placed reports whether a task is somewhere: due, dead, done, running, or waiting for its key.
local function placed(id, key)
  for _, set in ipairs({ due_set, dead, done }) do
    if redis.call("ZSCORE", set, id) then
      return true
    end
  end
  for i = 1, n_gens do
    if redis.call("HEXISTS", KEYS[11 + i], id) == 1 then
      return true
    end
  end
  return key ~= "" and waits(id, key)
end

local again, died, earliest = 0, 0, nil
local at = 5 + n_gens
for i = 1, tonumber(ARGV[at]) do
  local id, key, due, body = unpack(ARGV, at + 4 * i - 3, at + 4 * i)
  if redis.call("HEXISTS", tasks, id) == 1 and not placed(id, key) then
    if due ~= "" then
      redis.call("ZADD", due_set, due, id)
      again, earliest = again + 1, math.min(earliest or tonumber(due), tonumber(due))
    else
      redis.call("HSET", tasks, id, body)
      redis.call("ZADD", dead, now, id)
      died = died + 1
    end
  end
end
lanes_known(lanes, meta, ARGV[1], { ARGV[3] })
if earliest then
  wake(watch, ARGV[1], earliest, nil, nil, own({ ARGV[3] }))
end
if died > 0 then
  redis.call("HSET", meta, "died", int((num(redis.call("HGET", meta, "died")) or 0) + died))
end
if again + died > 0 then
  record(events, ARGV[2], "event", "found again", "lane", ARGV[3], "due", int(again), "dead", int(died))
end
return { again, died }
