-- asynq_drop.lua forgets tasks that asynq_take.lua held, and lets go of their unique locks, as asynq does when it deletes a task.
--
-- KEYS[1] zset of held tasks, then for each task: its hash, its unique lock or the hash again
-- ARGV    IDs of tasks
--
-- Returns how many were held. O(n * log(held)).
local n = 0
for i, id in ipairs(ARGV) do
  local record, lock = KEYS[2 * i], KEYS[2 * i + 1]
  if redis.call("ZREM", KEYS[1], id) == 1 then
    n = n + 1
    if lock ~= record and redis.call("GET", lock) == id then
      redis.call("DEL", lock)
    end
    redis.call("DEL", record)
  end
end
return n
