-- split.lua makes a namespace one of several partitions, for ever: what lies in a partition would not be found under another number.
--
-- KEYS[1] meta  hash  of the namespace itself
-- ARGV[1] how many partitions: 2 or more
-- Returns the number. Errors: PARTITIONS with the number that the namespace has, 1 if it was used without being split. O(1).
local meta, n = KEYS[1], ARGV[1]
local had = redis.call("HGET", meta, "partitions") or redis.call("EXISTS", meta) == 1 and "1"
if had and had ~= n then
  return redis.error_reply("PARTITIONS " .. had)
end
if not had then
  redis.call("HSET", meta, "partitions", n)
end
return tonumber(n)
