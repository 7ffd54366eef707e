-- asynq_take.lua takes tasks that wait out of asynq's hands: no server of asynq can begin them from then on. They are held, with all that
-- asynq has of them, until asynq_drop.lua forgets them or asynq_back.lua gives them back.
--
-- KEYS[1] asynq's list of pending tasks  KEYS[2] its zset of scheduled tasks  KEYS[3] its zset of tasks to be retried
-- KEYS[4] zset of held tasks -> when they are due, in seconds; 0: now
-- ARGV    IDs of tasks
--
-- Returns for each ID 1 if it is held from now on, 2 if it was held before, and 0 if asynq has begun or deleted the task meanwhile.
-- O(n * log(tasks)) if IDs of pending tasks come oldest first.
local reply = {}
for i, id in ipairs(ARGV) do
  local due
  if redis.call("ZSCORE", KEYS[4], id) then -- another import holds it
    due = false
  elseif redis.call("LREM", KEYS[1], -1, id) == 1 then
    due = 0
  else
    for _, set in ipairs({ KEYS[2], KEYS[3] }) do
      due = due or tonumber(redis.call("ZSCORE", set, id) or nil)
      redis.call("ZREM", set, id)
    end
  end
  if due then
    redis.call("ZADD", KEYS[4], due, id)
  end
  reply[i] = due == nil and 0 or due and 1 or 2
end
return reply
