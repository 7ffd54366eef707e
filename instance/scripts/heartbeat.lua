-- heartbeat.lua renews a lease, drops those that ran out, elects if need be, and returns the view.
--
-- KEYS[1..6] see lib_elect.lua
-- KEYS[7] details  hash   KEYS[8] releases hash   KEYS[9] orphans zset
-- KEYS[10] watch   zset   id -> the moment it will look again
-- KEYS[11] cancel  hash   task or "k:key" -> "fence asked-at reason"
-- ARGV[1] id  [2] generation  [3] lease ms  [4] how late a watcher may be before others look (ms)
-- Returns {view..., overslept 0|1, n orphans, orphans..., cancel requests as field, value...}.
-- Orphans are returned to the leader, and to whoever found them.
-- Errors: FENCED: the lease had run out, or another generation took the ID. O(1) while nothing changes.
local details, releases, orphans, watch, cancel = KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11]
local id = ARGV[1]
if not live(instances, members, id, ARGV[2]) then
  return redis.error_reply("FENCED instance " .. id)
end
-- At maxmemory Redis refuses the first write of a script if it may take memory, and only the first: a lease must be
-- renewed then too.
redis.call("ZREM", instances, "")
redis.call("ZADD", instances, now + tonumber(ARGV[3]), id)

local found = false
for _, lost in ipairs(redis.call("ZRANGEBYSCORE", instances, "-inf", now, "LIMIT", 0, 100)) do
  local m = parse(redis.call("HGET", members, lost))
  redis.call("ZREM", instances, lost)
  redis.call("HDEL", members, lost)
  redis.call("HDEL", details, lost)
  redis.call("ZREM", watch, lost)
  if m.gen then
    redis.call("ZADD", orphans, now, int(m.gen))
    if m.release ~= "" and not remains(m.release) then
      local order = string.match(redis.call("HGET", releases, m.release) or "", "^%d+")
      redis.call("HSET", releases, m.release, (order or int(m.order)) .. " " .. int(now))
    end
    record(events, cap_events, "event", "lost", "instance", lost, "release", m.release, "generation", int(m.gen))
  end
  found = true
end
local lead = redis.call("HGET", leader, "id")
if found or not lead or lead == "" then
  elect()
end

local reply = view()
local first = redis.call("ZRANGE", watch, 0, 0, "WITHSCORES")
reply[#reply + 1] = first[2] and tonumber(first[2]) < now - tonumber(ARGV[4]) and 1 or 0
local lost = {}
if found or reply[2] == id then
  lost = redis.call("ZRANGE", orphans, 0, 15)
end
reply[#reply + 1] = #lost
for _, gen in ipairs(lost) do
  reply[#reply + 1] = gen
end
for _, part in ipairs(redis.call("HGETALL", cancel)) do
  reply[#reply + 1] = part
end
return reply
