-- recount.lua counts again how many tasks of each key and type run. A count without a run (its claim was lost with a
-- damaged key, or another program wrote to active) would hold up the tasks of its key or type for ever. The leader calls
-- the script now and then.
--
-- KEYS[1] active  hash  KEYS[2] members hash  KEYS[3] orphans zset  KEYS[4] held zset  KEYS[5] tasks hash  KEYS[6] watch zset
-- KEYS[7] events stream
-- KEYS[8] ..      running hashes of the generations, then the due sets
-- ARGV[1] wake channel  [2] cap of events  [3] most runs to look at  [4] n generations, then their numbers
-- Returns {how many counts were wrong}, or {-1} if there is a generation that the caller did not name, or too many runs.
-- O(runs + instances).
local active, members, orphans, held, tasks, watch, events = unpack(KEYS, 1, 7)
local n = tonumber(ARGV[4])

local runs = 0
for i = 1, n do
  runs = runs + redis.call("HLEN", KEYS[7 + i])
end
if runs > tonumber(ARGV[3]) or others(members, orphans, 5, n) then
  return { -1 }
end

local counts = {}
for i = 1, n do
  for _, value in ipairs(redis.call("HVALS", KEYS[7 + i])) do
    for name in string.gmatch(value, "\31([^\31]+)") do
      counts[name] = (counts[name] or 0) + 1
    end
  end
end

local wrong, keys = 0, {}
local function set(name, is)
  wrong = wrong + 1
  if is > 0 then
    redis.call("HSET", active, name, int(is))
  else
    redis.call("HDEL", active, name)
  end
  if string.sub(name, 1, 2) == "k:" then
    keys[#keys + 1] = string.sub(name, 3)
  end
end
local all = redis.call("HGETALL", active)
for i = 1, #all, 2 do
  local name, is = all[i], counts[all[i]] or 0
  counts[name] = nil
  if all[i + 1] ~= int(is) then
    set(name, is)
  end
end
for name, is in pairs(counts) do
  set(name, is)
end
if wrong > 0 then
  local declared = {}
  for i = 8 + n, #KEYS do
    declared[KEYS[i]] = true
  end
  turn_over(tasks, active, held, keys, declared)
  wake(watch, ARGV[1], now)
  record(events, ARGV[2], "event", "recounted", "counts", int(wrong))
end
return { wrong }
