-- errand_note.lua notes how far the worker of an errand is, if it is still its turn.
--
-- KEYS[1] errands  hash  id -> record (see lib_errand.lua)
-- ARGV[1] id  [2] turn  [3] state: running; waiting, to leave it to another worker; done; failed  [4] matched, changed and
--     unreadable so far  [5] cursor  [6] what is said of its end  [7] how long the hash is kept after this call, ms
-- Returns {now, state}: "stopped" if somebody has stopped it meanwhile, unless it is done; "lost" if it is not the caller's turn any
-- more: then nothing is noted. O(1).
local hash, id = KEYS[1], ARGV[1]
local e = errand(redis.call("HGET", hash, id))
if not e or int(e.turn) ~= ARGV[2] then
  return { now, "lost" }
end
if e.state ~= "stopped" or ARGV[3] == "done" then
  e.state, e.said = ARGV[3], ARGV[6]
end
e.at, e.counts, e.cursor = now, ARGV[4], ARGV[5]
redis.call("HDEL", hash, nobody) -- passes at maxmemory, and then so does the rest
redis.call("HSET", hash, id, errand_text(e))
redis.call("PEXPIRE", hash, ARGV[7])
return { now, e.state }
