-- pause.lua stops all instances from claiming for a time, or ends such a pause. Runs go on and are settled; due tasks wait.
--
-- KEYS[1..15] see lib_elect.lua
-- ARGV[1] for how long (ms); 0 ends it  [2] who asks for it, or ""  [3] why, or ""
-- Returns view. O(1).
if ARGV[1] ~= "0" then
  redis.call("HSET", leader, "pause", int(now + tonumber(ARGV[1])), "reason", ARGV[3])
  record(events, cap_events, "event", "claims paused", "ms", ARGV[1], unpack(given("by", ARGV[2], "reason", ARGV[3])))
elseif redis.call("HDEL", leader, "pause", "reason") > 0 then
  record(events, cap_events, "event", "claims resumed", unpack(given("by", ARGV[2])))
end
tell(channel, "leader")
return view()
