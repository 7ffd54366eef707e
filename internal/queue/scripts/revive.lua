-- revive.lua makes dead tasks due again, when a person asks for it. A record that says what a schedule says counts only while the
-- schedule is at the revision at which it was read.
--
-- KEYS[1] dead zset  KEYS[2] tasks hash  KEYS[3] lanes hash  KEYS[4] meta hash  KEYS[5] watch zset
-- KEYS[6] events stream  KEYS[7] last hash  KEYS[8] .. due sets
-- ARGV[1] wake channel  [2] cap of events, or "" if it is no event  [3] who asks for it, or ""
-- ARGV[4] n lanes, then their names
-- then n tasks, then for each: task, lane, record, its slot (unix ms, 0: none), schedule or "", its revision ("0": there is none).
--   Before its slot no task is due, though the clock was set back.
-- Returns {now, how many were dead and are due now, then the indexes from 0 of the tasks whose schedule has another revision: the
-- script did nothing for them}. O(n * log(due)).
local dead, tasks, lanes, meta, watch, events, last = unpack(KEYS, 1, 7)
local n_lanes = tonumber(ARGV[4])
local at = 6 + n_lanes
local revived, used, moved, first = 0, {}, {}, nil
for i = 1, tonumber(ARGV[5 + n_lanes]) do
  local task, lane, body, slot, schedule, rev = unpack(ARGV, at, at + 5)
  lane, at = tonumber(lane), at + 6
  local said = schedule ~= "" and redis.pcall("HGET", last, schedule) -- a task before this one may have left dead already
  if schedule ~= "" and (type(said) == "string" and string.match(said, "^%d+") or "0") ~= rev then
    moved[#moved + 1] = i - 1
  elseif redis.call("ZREM", dead, task) == 1 then
    redis.call("HSET", tasks, task, body)
    local due = math.max(now, tonumber(slot))
    redis.call("ZADD", KEYS[7 + lane], due, task)
    first = math.min(first or due, due)
    if ARGV[2] ~= "" then
      record(events, ARGV[2], "event", "task retried by hand", "task", task, unpack(given("by", ARGV[3])))
    end
    used[#used + 1] = ARGV[4 + lane]
    revived = revived + 1
  end
end
if revived > 0 then
  lanes_known(lanes, meta, ARGV[1], used)
  wake(watch, ARGV[1], first, nil, nil, own(used))
end
return { now, revived, unpack(moved) }
