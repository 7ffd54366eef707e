-- recover.lua takes back tasks that a dead generation was running. Any instance may call it, several at once. Each task
-- moves once, because its claim must still have the value that the caller read.
--
-- KEYS[1] orphans zset  generation -> when it was declared dead
-- KEYS[2] running hash  of that generation
-- KEYS[3] tasks   hash  KEYS[4] dead zset  KEYS[5] active hash  KEYS[6] held zset  KEYS[7] history stream
-- KEYS[8] meta    hash  KEYS[9] watch zset  KEYS[10] lanes hash
-- KEYS[11] cancel hash   KEYS[12] .. due sets, and behind them, if there is an archive: runs stream
--
-- ARGV[1] generation  [2] wake channel  [3] cap of history  [4] n lanes, then their names
-- then n tasks, then for each: task, its value in running, lane (0: the task is dead), due, record, note or ""
--
-- Returns {now, moved, left, then the indexes from 0 of tasks that would be due again but that a caller asked to cancel:
-- their claims stay}. The script forgets a generation without claims. O(n * log(due)).
-- Errors: ALIVE (the generation was not declared dead).
local orphans, running, tasks, dead, active, held, history, meta, watch, lanes, cancel = unpack(KEYS, 1, 11)
local gen, channel = ARGV[1], ARGV[2]
if not redis.call("ZSCORE", orphans, gen) then
  return redis.error_reply("ALIVE generation " .. gen)
end
local declared, n_lanes = {}, tonumber(ARGV[4])
for i = 1, n_lanes do
  declared[KEYS[11 + i]] = true
end

local at, notes, moved, died, earliest = 6 + n_lanes, {}, 0, 0, now
local values, refused = {}, {}
local requests = redis.call("EXISTS", cancel) == 1
redis.call("HDEL", running, "")
for i = 1, tonumber(ARGV[5 + n_lanes]) do
  local task, value, lane, due, body, note = unpack(ARGV, at, at + 5)
  at = at + 6
  local is_held = redis.call("HGET", running, task) == value
  if is_held and requests and tonumber(lane) > 0 and asked(cancel, task, value) then
    refused[#refused + 1] = i - 1
  elseif is_held then
    redis.call("HDEL", running, task)
    redis.call("HSET", tasks, task, body)
    if tonumber(lane) == 0 then
      redis.call("ZADD", dead, now, task)
      died = died + 1
    else
      redis.call("ZADD", KEYS[11 + tonumber(lane)], due, task)
      earliest = math.min(earliest, tonumber(due))
    end
    values[#values + 1] = value
    if note ~= "" then
      notes[#notes + 1] = note
    end
    moved = moved + 1
  end
end
if moved > 0 and n_lanes > 0 then -- tidy.lua may have removed a lane that was empty while its task ran
  lanes_known(lanes, meta, channel, { unpack(ARGV, 5, 4 + n_lanes) })
end
if died > 0 then
  redis.call("HSET", meta, "died", int((num(redis.call("HGET", meta, "died")) or 0) + died))
end
if #notes > 0 then
  note_runs(history, KEYS[12 + n_lanes], ARGV[3], notes, "gen", gen)
end
if tonumber(ARGV[5 + n_lanes]) == 0 then -- no tasks were named: remove claims whose tasks have no record any more
  local rest = redis.call("HGETALL", running)
  for i = 1, #rest, 2 do
    if redis.call("HEXISTS", tasks, rest[i]) == 0 then
      redis.call("HDEL", running, rest[i])
      values[#values + 1] = rest[i + 1]
    end
  end
end
turn_over(tasks, active, held, unlimit(active, values), declared)
if #values > 0 then
  wake(watch, channel, earliest, nil, nil, own({ unpack(ARGV, 5, 4 + n_lanes) }))
end
local left = redis.call("HLEN", running)
if left == 0 then
  redis.call("ZREM", orphans, gen)
end
return { now, moved, left, unpack(refused) }
