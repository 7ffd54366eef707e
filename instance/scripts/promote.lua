-- promote.lua makes a release newer than all others, as if it had been rolled out now, and elects in the same step. A person
-- calls it to go back to a release that was lost: without the call, that release would keep its old order.
--
-- KEYS[1..15] see lib_elect.lua
-- ARGV[1] release  [2] who asks for it, or ""
-- Returns {its order, view...}. The order is 0, and nothing was done, if no instance of it is registered and none was lost
-- lately. O(instances).
sweep()
local release, order = ARGV[1], 0
local known = redis.call("HGET", releases, release)
if known then
  order = rise("order")
  redis.call("HDEL", strikes, release)
  redis.call("HSET", releases, release, int(order) .. (string.match(known, " %d+$") or " 0"))
  raise(release, order)
  local all = redis.call("HGETALL", members)
  local resigned, candidate = {}, false
  for i = 1, #all, 2 do
    local m = parse(all[i + 1])
    if m.release == release then
      if on_probation(m) then
        become(all[i], m, "r")
      end
      if m.resigned then
        m.id = all[i]
        resigned[#resigned + 1] = m
      else
        candidate = candidate or m.state == "r" and not m.standby
      end
    end
  end
  for _, m in ipairs(candidate and {} or resigned) do
    recall(m) -- else the release that a person promotes would not lead
  end
  record(events, cap_events, "event", "promoted", "release", release, unpack(given("by", ARGV[2])))
  elect()
end
return { int(order), unpack(view()) }
