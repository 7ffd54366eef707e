-- mend.lua sets keys aside that something else than onbeat has made one of another type, so that work goes on without
-- what they held. They are kept for a month under another name.
--
-- KEYS    n keys, then for each the name under which it is set aside. The first is the events stream, the second meta hash
-- ARGV[1] cap of events  [2..] the type that each should have
-- Returns the keys that were set aside. The schedules then count as changed: who knows them reads them again, and makes
-- anew what is not there. O(n).
local n, aside = #KEYS / 2, {}
for i = 1, n do
  local is = redis.call("TYPE", KEYS[i]).ok
  if is ~= "none" and is ~= ARGV[i + 1] then
    redis.call("RENAME", KEYS[i], KEYS[n + i])
    redis.call("PEXPIRE", KEYS[n + i], 2592000000)
    aside[#aside + 1] = KEYS[i]
  end
end
for _, key in ipairs(aside) do
  record(KEYS[1], ARGV[1], "event", "set aside", "key", key)
end
if #aside > 0 then
  local version = num(redis.call("HGET", KEYS[2], "schedules")) or 0
  redis.call("HSET", KEYS[2], "schedules", int(math.max(version + 1, now)))
end
return aside
