-- records.lua reads records, and stops when they are many bytes: a page of large ones must not hold up Redis, nor fill the memory of
-- the instance that asks.
--
-- KEYS[1] tasks hash  task -> record
-- ARGV[1] bytes after which it reads no further record
-- ARGV    task IDs, MaxBatch at most
-- Returns the records of the first of the tasks, of one at least; nil for a task that is gone. O(n).
local most, size, reply = tonumber(ARGV[1]), 0, {}
for i = 2, #ARGV do
  local record = redis.call("HGET", KEYS[1], ARGV[i])
  reply[i - 1] = record
  size = size + (record and #record or 0)
  if size >= most then
    break
  end
end
return reply
