-- cancel.lua removes a task that waits, or asks the instance that runs it to stop.
--
-- KEYS[1] tasks hash  KEYS[2] held zset  KEYS[3] cancel hash  KEYS[4] dead zset  KEYS[5] done zset
-- KEYS[6] events stream  KEYS[7] meta hash  KEYS[8] due set of the task  KEYS[9] active hash  KEYS[10] watch zset
-- KEYS[11] history stream, or runs for a task that no schedule made  KEYS[12] .. due sets of the tasks of its key
-- ARGV[1] task  [2] wake channel  [3] cap of events, or "" if it is no event  [4] reason  [5] "1": also remove it if it is dead or done, "2": only then
--         [6] its key, or ""  [7] cap of history  [8] note if it was due, or ""
--         [9] who asks for it, or ""
-- Returns "due" (removed), "running" (asked to stop), "dead" or "done" (removed, or left alone), or "" (unknown).
-- O(log(due)), and O(waiting for the key) for a task that waits for its key.
local tasks, held, cancel, dead, done, events, meta, set, active, watch, history = unpack(KEYS, 1, 11)
local task, channel, key = ARGV[1], ARGV[2], ARGV[6]
local declared = { [set] = true }
for i = 12, #KEYS do
  declared[KEYS[i]] = true
end
if redis.call("HEXISTS", tasks, task) == 0 then
  return ""
end
if ARGV[5] == "2" and not redis.call("ZSCORE", dead, task) and not redis.call("ZSCORE", done, task) then
  return ""
end
local where
if redis.call("ZREM", set, task) == 1 then
  where = "due"
  -- The task may have been the next one of its key: then another task that waits for the key moves up.
  if key ~= "" and turn_over(tasks, active, held, { key }, declared) then
    wake(watch, channel, now)
  end
elseif redis.call("ZSCORE", dead, task) then
  where = "dead"
elseif redis.call("ZSCORE", done, task) then
  where = "done"
elseif key ~= "" then
  local low, high = held_range(key)
  for _, member in ipairs(redis.call("ZRANGEBYLEX", held, low, high)) do
    if string.match(member, "([^\31]*)$") == task then
      redis.call("ZREM", held, member)
      where = "due"
    end
  end
end
if where == "dead" or where == "done" then
  if ARGV[5] == "0" then
    return where
  end
  redis.call("ZREM", dead, task)
  redis.call("ZREM", done, task)
end
if where then
  remove_last("HDEL", tasks, { task })
  if ARGV[3] ~= "" then
    record(events, ARGV[3], "event", "task deleted", "task", task, "state", where, "reason", ARGV[4], unpack(given("by", ARGV[9])))
  end
  if where == "due" and ARGV[8] ~= "" then
    note_runs(history, history, ARGV[7], { ARGV[8] })
  end
  return where
end
local fence = num(redis.call("HGET", meta, "fence")) or 0
redis.call("HSET", cancel, request_of(task), int(fence) .. " " .. int(now) .. " " .. ARGV[4])
tell(channel, "cancel")
if ARGV[3] ~= "" then
  record(events, ARGV[3], "event", "task cancel asked", "task", task, "reason", ARGV[4], unpack(given("by", ARGV[9])))
end
return "running"
