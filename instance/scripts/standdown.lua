-- standdown.lua is called by a leader that cannot schedule. If another instance could lead, the caller goes back to starting,
-- and the other instance is elected in the same step; state.lua makes the caller ready again later. Else the caller leads on.
-- An instance on probation could lead too: it waits only while another instance can lead, so pardon ends its wait here.
--
-- KEYS[1..15] see lib_elect.lua
-- ARGV[1] id  [2] generation  [3] epoch  [4] why, for people
-- ARGV[5] "1": hand over if possible; else only record the reason  [6] "1": record an event if the caller leads on
-- Returns {1 or 0: whether it stood down, view...}. Errors: FENCED, NOTLEADER. O(instances).
local id = ARGV[1]
local alive, member = live(instances, members, id, ARGV[2])
if not alive then
  return redis.error_reply("FENCED instance " .. id)
end
local lead = redis.call("HMGET", leader, "id", "gen", "epoch")
if lead[1] ~= id or lead[2] ~= ARGV[2] or lead[3] ~= ARGV[3] then
  return redis.error_reply("NOTLEADER epoch " .. (lead[3] or "0"))
end

-- another reports whether an instance besides the caller could lead.
local function another()
  local suspected = suspicions()
  for _, other in ipairs(living()) do
    local m = parse(redis.call("HGET", members, other))
    if other ~= id and may_lead(m) and not suspected(other, m) then
      return true
    end
  end
  return false
end

sweep()
local m, stood = parse(member), 0
if ARGV[5] == "1" and another() then
  stood = 1
  m.state = "s"
  redis.call("HSET", members, id, pack(m))
  redis.call("ZREM", trial, ARGV[2]) -- else it would count as on probation, and be made ready too soon
  record(events, cap_events, "event", "stood down", "instance", id, "release", m.release, "reason", ARGV[4])
  elect()
elseif ARGV[6] == "1" then
  record(events, cap_events, "event", "leads but cannot schedule", "instance", id, "release", m.release, "reason", ARGV[4])
end
return { stood, unpack(view(id, pack(m))) }
