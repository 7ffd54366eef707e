-- lib_wake.lua: waking whoever watches for the next due task.
--
-- Instances that read the same lanes are of one kind. What holds after every script: of each kind that has an idle
-- instance which may take work, one is in watch with a score no later than the first due time in the lanes it reads, less
-- those whose limit is reached. So whatever makes a task due, or a limit free, tells one of each kind, and whoever stops
-- watching hands its place to another of its own. A score that has gone by is found by every heartbeat, and so is a
-- message that was lost.

-- never is the score of those who wait to be told: past any due time. (Not 9e15: the embedded server's Lua does not read
-- the exponent it is printed with.)
local never = 9007199254740991

-- A member of watch is an instance and, behind <1f>, a name for the lanes it reads. Those who read the same lanes watch
-- for each other, and for nobody else.
local function watcher(member)
  return string.match(member, "^([^\31]*)\31?(.*)$")
end

-- wake tells the earliest watcher that a task is due at the given time, if that is earlier than what it waits for: one
-- of each kind, or of the given one only, or of all but one. Whoever leaves due work behind tells the next of its kind.
local function wake(watch, channel, due, only, except)
  local list, asked = redis.call("ZRANGE", watch, 0, -1, "WITHSCORES"), {}
  for i = 1, #list, 2 do
    local id, reads = watcher(list[i])
    if not asked[reads] and reads ~= except and (not only or only == reads) then
      asked[reads] = true
      if tonumber(list[i + 1]) > due then
        redis.call("ZADD", watch, due, list[i])
        tell(channel .. ":" .. id, int(due))
      end
    end
  end
end

-- lanes_changed gives the list of lanes a new version: at least the clock, so that after a loss of writes no version
-- comes back with another list.
local function lanes_changed(meta)
  local version = num(redis.call("HGET", meta, "lanes")) or 0
  redis.call("HSET", meta, "lanes", int(math.max(version + 1, now)))
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
    lanes_changed(meta)
    tell(channel, "lanes")
  end
end
