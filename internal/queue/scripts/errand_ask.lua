-- errand_ask.lua stops an errand, or lets one go on that was stopped or has failed. An errand of another state stays as it is.
--
-- KEYS[1] errands  hash  id -> record (see lib_errand.lua)
-- ARGV[1] id  [2] stop or resume  [3] what is said of its end  [4] most open errands  [5] most of one sender  [6] how long the
--     hash is kept after this call, ms
-- Returns {now, "ok"}, {now, "none"} if there is no such errand, or, having done nothing, {now, "all"} or {now, "own"} by the bound
-- that it would break. O(errands).
local hash, id = KEYS[1], ARGV[1]
local e = errand(redis.call("HGET", hash, id))
if not e then
  return { now, "none" }
end
if ARGV[2] == "stop" and is_open(e) then
  e.state, e.said = "stopped", ARGV[3] -- the worker hears of it with its next note, which it may still make
elseif ARGV[2] == "resume" and (e.state == "stopped" or e.state == "failed") then
  local full = crowded((errands(hash)), e.by, ARGV[4], ARGV[5])
  if full then
    return { now, full }
  end
  e.state, e.said, e.turn = "waiting", "", e.turn + 1
else
  return { now, "ok" }
end
e.at = now
redis.call("HDEL", hash, nobody) -- passes at maxmemory, and then so does the rest
redis.call("HSET", hash, id, errand_text(e))
redis.call("PEXPIRE", hash, ARGV[6])
return { now, "ok" }
