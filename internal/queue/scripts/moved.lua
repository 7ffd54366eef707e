-- moved.lua lets the marks of move.lua go: the other store has removed the tasks.
--
-- KEYS     the marks
-- ARGV[1]  how long a mark stays from now on (ms): longer than a call of move.lua that was under way can still add tasks
--
-- Returns 0. O(n).
for _, mark in ipairs(KEYS) do
  redis.call("PEXPIRE", mark, ARGV[1])
end
return 0
