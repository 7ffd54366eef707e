-- mend.lua sets aside keys that another program has overwritten with another type, so that work goes on without them. It
-- keeps them for a month under another name.
--
-- KEYS    n keys, then for each the name under which it is set aside. The first are the events stream, the meta hash and
--         the changed zset
-- ARGV[1] cap of events  [2..] the type that each should have
-- Returns the keys that were set aside. If there is one, the schedules get a new version, so that every instance reads
-- their changes again. If it is a key of the schedules, "*" counts as a changed schedule: the leader compares all schedules
-- with what it knows, and writes again what is missing. If it is a due set or the list of lanes, a mark in meta says so
-- until its content has been found again (see restock.lua). O(n).
local n, aside, lost, stock = #KEYS / 2, {}, {}, false
for i = 1, n do
  local is = redis.call("TYPE", KEYS[i]).ok
  if is ~= "none" and is ~= ARGV[i + 1] then
    redis.call("RENAME", KEYS[i], KEYS[n + i])
    redis.call("PEXPIRE", KEYS[n + i], 2592000000)
    aside[#aside + 1] = KEYS[i]
    local what = string.match(KEYS[i], "}:(.*)$")
    stock = stock or what == "schedules" or what == "last" or what == "behind" or what == "changed"
    if what == "lanes" or string.find(what, "^due:") then
      lost[#lost + 1], lost[#lost + 2] = "lost:" .. int(now) .. ":" .. what, ""
    end
  end
end
for _, key in ipairs(aside) do
  record(KEYS[1], ARGV[1], "event", "set aside", "key", key)
end
if #aside > 0 then
  local version = math.max((num(redis.call("HGET", KEYS[2], "schedules")) or 0) + 1, now)
  redis.call("HSET", KEYS[2], "schedules", int(version))
  many("HSET", KEYS[2], lost)
  if stock then
    redis.call("ZADD", KEYS[3], int(version), "*")
  end
end
return aside
