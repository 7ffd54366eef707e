-- errand_begin.lua notes an errand that somebody is to work on. It drops the errands that ended long ago, and those that ended
-- first if there are too many.
--
-- KEYS[1] errands  hash  id -> record (see lib_errand.lua)
-- ARGV[1] id  [2] who begins it  [3] what is asked  [4] most open errands  [5] most of one sender  [6] most errands that are
--     kept  [7] how long one is kept after its end, ms
-- Returns {now, "begun"}, also if it has begun already: the reply to the first call was lost. Else it does nothing and returns
-- {now, "all"} or {now, "own"}, by the bound. O(errands).
local hash, id, keep = KEYS[1], ARGV[1], tonumber(ARGV[7])
if redis.call("HEXISTS", hash, id) == 1 then
  return { now, "begun" }
end
local list, gone = errands(hash)
local full = crowded(list, ARGV[2], ARGV[4], ARGV[5])
if full then
  return { now, full }
end
table.sort(list, function(a, b) return a.at < b.at end)
local left = #list
for _, e in ipairs(list) do
  if not is_open(e) and (e.at + keep <= now or left >= tonumber(ARGV[6])) then
    gone[#gone + 1] = e.id
    left = left - 1
  end
end
redis.call("HDEL", hash, nobody) -- passes at maxmemory, and then so does the rest
redis.call("HSET", hash, id, errand_text({
  state = "waiting", turn = 0, begun = now, at = now, counts = "0 0 0", by = ARGV[2], asked = ARGV[3], cursor = "", said = "",
}))
redis.call("PEXPIRE", hash, keep)
remove_last("HDEL", hash, gone)
return { now, "begun" }
