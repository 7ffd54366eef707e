-- exist.lua looks which tasks there are, and reads no record: a record may be large.
--
-- KEYS[1] tasks hash  task -> record
-- ARGV    task IDs, MaxBatch at most
-- Returns 1 for each task that exists, and 0 for each other one. O(n).
local reply = {}
for i = 1, #ARGV do
  reply[i] = redis.call("HEXISTS", KEYS[1], ARGV[i])
end
return reply
