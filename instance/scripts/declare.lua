-- declare.lua asks for the right to declare schedules: it goes to the leader, unless a newer release, or a newer
-- generation of the same one, has declared before. An older instance that leads because the newer one died must
-- neither bring back what was removed nor prune what was added.
--
-- KEYS[1..10] see lib_elect.lua
-- ARGV[1] id  [2] generation  [3] epoch
-- Returns {1 or 0, "order generation" of whoever declared last}. Errors: FENCED, NOTLEADER. O(1).
local alive, member = live(instances, members, ARGV[1], ARGV[2])
if not alive then
  return redis.error_reply("FENCED instance " .. ARGV[1])
end
local lead = redis.call("HMGET", leader, "id", "gen", "epoch")
if lead[1] ~= ARGV[1] or lead[2] ~= ARGV[2] or lead[3] ~= ARGV[3] then
  return redis.error_reply("NOTLEADER epoch " .. (lead[3] or "0"))
end
local m = parse(member)
local had = redis.call("HGET", meta, "declared") or "0 0"
local order, gen = string.match(had, "^(%d+) (%d+)$")
order, gen = tonumber(order), tonumber(gen)
if order > m.order or order == m.order and gen > m.gen then
  return { 0, had }
end
redis.call("HSET", meta, "declared", int(m.order) .. " " .. int(m.gen))
return { 1, had }
