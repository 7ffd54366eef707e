-- asynq_back.lua gives tasks that asynq_take.lua held back to asynq, each to where it was: a task without a time is pending, and of one
-- with a time asynq's own record says the state, which nobody changes while the task is held.
--
-- KEYS[1] to KEYS[4] as in asynq_take.lua, then for each task its hash
-- ARGV    IDs of tasks, oldest first
--
-- Returns how many were held. O(n * log(tasks)).
local n = 0
for i = #ARGV, 1, -1 do -- asynq takes the next pending task from the end, where these were
  local id = ARGV[i]
  local due = redis.call("ZSCORE", KEYS[4], id)
  if due then
    redis.call("ZREM", KEYS[4], id)
    n = n + 1
    if tonumber(due) == 0 then
      redis.call("RPUSH", KEYS[1], id)
    elseif redis.call("HGET", KEYS[4 + i], "state") == "retry" then
      redis.call("ZADD", KEYS[3], due, id)
    else
      redis.call("ZADD", KEYS[2], due, id)
    end
  end
end
return n
