-- lib_wake.lua: waking whoever watches for the next due task.

-- never is the score of those who wait to be told: past any due time. (Not 9e15: the embedded server's Lua does not read
-- the exponent it is printed with.)
local never = 9007199254740991

-- A member of watch is an instance and, behind <1f>, a name for the lanes it reads. Those who read the same lanes watch
-- for each other, and for nobody else.
local function watcher(member)
  return string.match(member, "^([^\31]*)\31?(.*)$")
end

-- wake tells the earliest watcher that a task is due at the given time, if that is earlier than what it waits for: one
-- of each who read the same lanes, or of those who read the given ones. Whoever leaves due work behind tells the next.
local function wake(watch, channel, due, only)
  local list, asked = redis.call("ZRANGE", watch, 0, -1, "WITHSCORES"), {}
  for i = 1, #list, 2 do
    local id, reads = watcher(list[i])
    if not asked[reads] and (not only or only == reads) then
      asked[reads] = true
      if tonumber(list[i + 1]) > due then
        redis.call("ZADD", watch, due, list[i])
        redis.call("PUBLISH", channel .. ":" .. id, int(due))
      end
    end
  end
end

-- lanes_known registers lanes that are new, and tells everyone, so that they are read from now on.
local function lanes_known(lanes, meta, channel, names)
  local known, fresh = redis.call("HMGET", lanes, unpack(names)), {}
  for i, name in ipairs(names) do
    if not known[i] then
      fresh[#fresh + 1] = name
      fresh[#fresh + 1] = int(now)
    end
  end
  if #fresh > 0 then
    many("HSET", lanes, fresh)
    redis.call("HINCRBY", meta, "lanes", 1)
    redis.call("PUBLISH", channel, "lanes")
  end
end
