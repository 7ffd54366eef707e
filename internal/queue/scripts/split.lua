-- split.lua makes a namespace one of several partitions, for ever: what lies in a partition would not be found under another number.
-- It also notes the types whose tasks all lie in one partition, because only so many of them may run at once.
--
-- KEYS[1] meta  hash  of the namespace itself: partitions: how many; limited:<type>: "1"
-- ARGV[1] how many partitions: 2 or more
-- ARGV[2..] types that have a limit
-- Returns all types that were noted. Errors: PARTITIONS with the number that the namespace has, 1 if it was used without being split.
-- O(types).
local meta, n = KEYS[1], ARGV[1]
local had = redis.call("HGET", meta, "partitions") or redis.call("EXISTS", meta) == 1 and "1"
if had and had ~= n then
  return redis.error_reply("PARTITIONS " .. had)
end
if not had then
  redis.call("HSET", meta, "partitions", n)
end
for i = 2, #ARGV do
  if redis.call("HEXISTS", meta, "limited:" .. ARGV[i]) == 0 then
    redis.call("HSET", meta, "limited:" .. ARGV[i], "1")
  end
end
local types = {}
for _, field in ipairs(redis.call("HKEYS", meta)) do
  local typ = string.match(field, "^limited:(.*)$")
  if typ then
    types[#types + 1] = typ
  end
end
return types
