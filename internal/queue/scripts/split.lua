-- split.lua makes a namespace one of several partitions, for ever: with another number, nobody would find what lies in a partition.
-- It also notes the types whose tasks all lie in one partition, because only so many of them may run at once.
--
-- KEYS[1] meta  hash  of the namespace itself: partitions: how many; limited: types with a limit, with a space behind each
-- ARGV[1] how many partitions: 2 or more
-- ARGV[2..] types that have a limit
-- Returns all types that were noted, as one text. Errors: PARTITIONS with the number that the namespace has, 1 if it was used without
-- being split. O(types).
local meta, n = KEYS[1], ARGV[1]
local had = redis.call("HGET", meta, "partitions") or redis.call("HLEN", meta) > 0 and "1"
if had and had ~= n then
  return redis.error_reply("PARTITIONS " .. had)
end
if not had then
  redis.call("HSET", meta, "partitions", n)
end
local noted = redis.call("HGET", meta, "limited") or ""
local all = noted
for i = 2, #ARGV do
  if not string.find(" " .. all, " " .. ARGV[i] .. " ", 1, true) then
    all = all .. ARGV[i] .. " "
  end
end
if all ~= noted then
  redis.call("HSET", meta, "limited", all)
end
return all
