-- raise.lua gives a release the order that it has in another partition of the namespace, if that is larger, and elects in the same
-- step. So partitions that met two releases in different orders agree in the end which one is newer.
--
-- KEYS[1..15] see lib_elect.lua
-- ARGV[1] release  [2] its order elsewhere
-- Returns its order, 0 if the release is not known. If another release has that order too, and a smaller name, the order is the next
-- one: it goes on to the other partitions. O(instances + releases).
sweep()
local release, order = ARGV[1], tonumber(ARGV[2])
local known = redis.call("HGET", releases, release)
local had = tonumber(string.match(known or "", "^%d+") or "0")
if had == 0 or had >= order then
  return { int(had) }
end
at_least("order", order)
local all = redis.call("HGETALL", releases)
for i = 1, #all, 2 do
  if all[i] < release and tonumber(string.match(all[i + 1], "^%d+")) == order then
    order = rise("order")
    break
  end
end
redis.call("HSET", releases, release, int(order) .. (string.match(known, " %d+$") or " 0"))
raise(release, order)
elect()
return { int(order) }
