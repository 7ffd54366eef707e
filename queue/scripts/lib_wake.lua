-- lib_wake.lua: waking whoever watches for the next due task.

-- never is the score of those who wait to be told: past any due time. (Not 9e15: the embedded server's Lua does not read
-- the exponent it is printed with.)
local never = 9007199254740991

-- wake tells the earliest watcher that a task is due at the given time, if that is earlier than what it waits for.
-- Only one is told; whoever leaves due work behind tells the next.
local function wake(watch, channel, due)
  local first = redis.call("ZRANGE", watch, 0, 0, "WITHSCORES")
  if first[1] and tonumber(first[2]) > due then
    redis.call("ZADD", watch, due, first[1])
    redis.call("PUBLISH", channel .. ":" .. first[1], int(due))
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
