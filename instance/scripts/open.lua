-- open.lua opens the gate after a time with no leader: the leader has dealt with the slots missed meanwhile, and
-- consumers may claim again.
--
-- KEYS[1..15] see lib_elect.lua
-- ARGV[1] id  [2] generation  [3] epoch
-- Returns view. Errors: FENCED, NOTLEADER. O(1).
local alive, member = live(instances, members, ARGV[1], ARGV[2])
if not alive then
  return redis.error_reply("FENCED instance " .. ARGV[1])
end
local lead = redis.call("HMGET", leader, "id", "gen", "epoch", "open")
if lead[1] ~= ARGV[1] or lead[2] ~= ARGV[2] or lead[3] ~= ARGV[3] then
  return redis.error_reply("NOTLEADER epoch " .. (lead[3] or "0"))
end
if lead[4] ~= "1" then
  redis.call("HSET", leader, "open", "1", "back", "")
  tell(channel, "leader")
end
return view(ARGV[1], member)
