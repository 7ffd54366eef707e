-- revive.lua makes dead tasks due again, when a person asks for it.
--
-- KEYS[1] dead zset  KEYS[2] tasks hash  KEYS[3] lanes hash  KEYS[4] meta hash  KEYS[5] watch zset
-- KEYS[6] events stream  KEYS[7] .. due sets
-- ARGV[1] wake channel  [2] cap of events, or "" if it is no event  [3] who asks for it, or ""
-- ARGV[4] n lanes, then their names
-- then n tasks, then for each: task, lane, record
-- Returns {now, how many were dead and are due now}. O(n * log(due)).
local dead, tasks, lanes, meta, watch, events = unpack(KEYS, 1, 6)
local n_lanes = tonumber(ARGV[4])
local at = 6 + n_lanes
local revived, used = 0, {}
for _ = 1, tonumber(ARGV[5 + n_lanes]) do
  local task, lane, body = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2]
  at = at + 3
  if redis.call("ZREM", dead, task) == 1 then
    redis.call("HSET", tasks, task, body)
    redis.call("ZADD", KEYS[6 + lane], now, task)
    if ARGV[2] ~= "" then
      record(events, ARGV[2], "event", "task retried by hand", "task", task, unpack(given("by", ARGV[3])))
    end
    used[#used + 1] = ARGV[4 + lane]
    revived = revived + 1
  end
end
if revived > 0 then
  lanes_known(lanes, meta, ARGV[1], used)
  wake(watch, ARGV[1], now, nil, nil, own(used))
end
return { now, revived }
