-- leave.lua takes a waiter out of the line. If the waiter was woken already and did not look, the next one is woken.
--
-- KEYS[1] wait  zset  see lib_line.lua
-- ARGV[1] waiter  [2] channel of the lock
-- Returns 1. O(log waiters).
if redis.call("ZREM", KEYS[1], ARGV[1]) == 0 then
  wake(KEYS[1], ARGV[2])
end
return 1
