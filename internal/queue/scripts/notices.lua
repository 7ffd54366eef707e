-- notices.lua notes what the next leader must know, such as what this one has told its targets, if the caller still leads, and no
-- other leader has moved on meanwhile.
--
-- KEYS[1] instances zset  KEYS[2] members hash  KEYS[3] leader hash
-- KEYS[4] notices or health  hash  name -> text (see package notify and producer.Health)
-- KEYS[5] last      hash  with health: only names that are fields of it are set, and those that begin with @
-- ARGV[1] id  [2] generation  [3] epoch  [4] name of the text to compare  [5] that text as it was read, or ""
-- ARGV[6] how long all of it is kept after this call, ms
-- ARGV[7] n names to set, then each with its text, then the names to remove
-- Returns {now, 1}, or {now, 0} if the text is another one: then the script did nothing. Errors: NOTLEADER, FENCED. O(n).
local instances, members, leader, notices = unpack(KEYS, 1, 4)
local id, gen, epoch = ARGV[1], ARGV[2], ARGV[3]
if not live(instances, members, id, gen) then
  return redis.error_reply("FENCED instance " .. id)
end
local lead = redis.call("HMGET", leader, "id", "gen", "epoch")
if lead[1] ~= id or lead[2] ~= gen or lead[3] ~= epoch then
  return redis.error_reply("NOTLEADER epoch " .. (lead[3] or "0"))
end
if (redis.call("HGET", notices, ARGV[4]) or "") ~= ARGV[5] then
  return { now, 0 }
end

local set, gone, at = {}, {}, 8 + 2 * tonumber(ARGV[7])
for i = 8, #ARGV do
  local list = i < at and set or gone
  list[#list + 1] = ARGV[i]
end
if KEYS[5] then
  local noted = {}
  for i = 1, #set, 2 do
    if set[i]:sub(1, 1) == "@" or redis.call("HEXISTS", KEYS[5], set[i]) == 1 then
      noted[#noted + 1], noted[#noted + 2] = set[i], set[i + 1]
    end
  end
  set = noted
end
redis.call("HDEL", notices, nobody) -- the undo of the next call needs the right
many("HSET", notices, set)
redis.call("PEXPIRE", notices, tonumber(ARGV[6]))
remove_last("HDEL", notices, gone)
return { now, 1 }
