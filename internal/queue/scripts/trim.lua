-- trim.lua removes the oldest entries of a stream, which an archive has. They are counted from the oldest, and not from the
-- newest: entries that were added since the caller looked do not move the place up to which the script removes.
--
-- KEYS[1] history or runs stream
-- ARGV[1] the oldest entry, as the caller saw it: behind another one the count is of another history
-- ARGV[2] most entries to remove
-- ARGV[3] an entry that stays, with all that came after it; or ""
-- Returns {removed}: whole nodes of the stream only, so as a rule fewer than asked. O(removed).
local stream = KEYS[1]
local first = redis.call("XRANGE", stream, "-", "+", "COUNT", 1)[1]
if not first or first[1] ~= ARGV[1] then
  return { 0 }
end
if ARGV[3] ~= "" then
  return { redis.call("XTRIM", stream, "MINID", "~", ARGV[3], "LIMIT", ARGV[2]) }
end
local info, length = redis.call("XINFO", "STREAM", stream), 0
for i = 1, #info, 2 do
  if info[i] == "length" then
    length = tonumber(info[i + 1])
  end
end
return { redis.call("XTRIM", stream, "MAXLEN", "~", int(math.max(length - tonumber(ARGV[2]), 0))) }
