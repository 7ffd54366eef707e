-- lib_wake.lua wakes the instances that watch for the next due task.
--
-- Instances that read the same lanes are of one kind. This holds after every script: if a kind has an idle instance that
-- may claim, then one instance of that kind is in watch, with a score no later than the first due time in the lanes that
-- it reads (lanes whose limit is reached do not count). So a script that makes a task due, or a limit free, wakes one
-- instance of each kind. An instance that stops watching hands its place to another of its kind. If a message is lost, or
-- a watcher dies, its score goes by, and the next heartbeat of any instance finds that.
--
-- A process that died receives no message, and Redis says so at once. Then the next watcher of the same kind is told too, and
-- the monitor looks whether the leader lives (see instance/scripts/look.lua). The same holds for a watcher that should have
-- looked long ago: it may have died, and its place lasts as long as its lease.

-- never is the score of an instance that only waits to be woken: later than any due time. (Not 9e15: the embedded server's
-- Lua cannot read the exponent that it prints.)
local never = 9007199254740991

-- overdue is how late a watcher may be before nobody relies on it any more (ms).
local overdue = 100

-- A member of watch is an instance and, after <1f>, a name for the lanes that it reads. Instances watch only for others
-- that read the same lanes.
local function watcher(member)
  return string.match(member, "^([^\31]*)\31?(.*)$")
end

-- wake tells the earliest watcher of each kind that a task is due at the given time, unless that watcher looks no later
-- anyway. With only, it wakes just that kind; with except, all but that kind. A script that leaves due work wakes the next
-- instance of its own kind. With all, it tells every watcher: of a task of the dispatcher's own types, for which the first
-- watcher may have no worker left although it has some for other tasks.
local function wake(watch, channel, due, only, except, all)
  local list, asked, silent = redis.call("ZRANGE", watch, 0, -1, "WITHSCORES"), {}, false
  for i = 1, #list, 2 do
    local id, reads = watcher(list[i])
    if (all or not asked[reads]) and reads ~= except and (not only or only == reads) then
      local at = tonumber(list[i + 1])
      asked[reads] = at + overdue >= now
      if at > due then
        redis.call("ZADD", watch, due, list[i])
        if tell(channel .. ":" .. id, int(due)) == 0 then
          asked[reads], silent = nil, true
        end
      end
    end
  end
  if silent then
    tell(channel, "silent")
  end
end

-- own reports whether one of the lanes is of the dispatcher's own types: their tasks run on workers of their own.
local function own(names)
  for _, name in ipairs(names) do
    if string.find(name, "|onbeat%.[^|]*$") then
      return true
    end
  end
  return false
end

-- lanes_changed gives the list of lanes a new version. It is at least the clock, so that after Redis lost its last writes no
-- version comes back with another list.
local function lanes_changed(meta)
  local version = num(redis.call("HGET", meta, "lanes")) or 0
  redis.call("HSET", meta, "lanes", int(math.max(version + 1, now)))
end

-- lanes_known adds new lanes to the list, with the name of the one that made them if it has one, and tells all instances to read it.
local function lanes_known(lanes, meta, channel, names, by)
  local known, fresh = redis.call("HMGET", lanes, unpack(names)), {}
  for i, name in ipairs(names) do
    if not known[i] then
      fresh[#fresh + 1] = name
      fresh[#fresh + 1] = by and by ~= "" and int(now) .. " " .. by or int(now)
    end
  end
  if #fresh > 0 then
    many("HSET", lanes, fresh)
    lanes_changed(meta)
    tell(channel, "lanes")
  end
end
