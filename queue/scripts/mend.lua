-- mend.lua sets keys aside that something else than onbeat has made one of another type, so that work goes on without
-- what they held. They are kept for a month under another name.
--
-- KEYS    n keys, then for each the name under which it is set aside. The first are the events stream, the meta hash and
--         the changed zset
-- ARGV[1] cap of events  [2..] the type that each should have
-- Returns the keys that were set aside. The schedules then count as changed: who knows them reads them again. If it was
-- theirs, "*" counts as a schedule that was changed: who leads takes stock, and makes anew what is not there. What tasks
-- lay in a due set, and which there are, is marked in meta as lost until it has been found again (see restock.lua). O(n).
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
