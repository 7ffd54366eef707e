-- lib_held.lua: tasks that wait for their key, and the count of running tasks a key.
--
-- A held member is KEY <1f> DUE <1f> DUE-SET <1f> ID, all with score 0, so that the members of one key lie together,
-- in line. An ID may not contain the separator: control characters are refused at the edge. Due times have 16 digits;
-- those of tasks that are behind have 13, and so lie behind those on time, until 2286, also for an older release.

local function held_range(key)
  return "[" .. key .. "\31", "[" .. key .. "\32"
end

-- on_time_range is where those lie that are not behind.
local function on_time_range(key)
  return "[" .. key .. "\31", "(" .. key .. "\031001"
end

-- hold parks a due task behind its key.
local function hold(held, key, due, set, id, behind)
  local digits = string.format(behind and "%013.0f" or "%016.0f", tonumber(due))
  local member = table.concat({ key, digits, set, id }, "\31")
  redis.call("ZADD", held, 0, member)
  undo("ZREM", held, member)
end

-- line_of is nil if no task waits for a key; else it has how many may run, as the first in line says, and how many were
-- put into each due set.
local function line_of(tasks, held, key)
  local low, high = held_range(key)
  local first = redis.call("ZRANGEBYLEX", held, low, high, "LIMIT", 0, 1)[1]
  if not first then
    return nil
  end
  local body = redis.call("HGET", tasks, string.match(first, "([^\31]*)$"))
  return { limit = tonumber(body and string.match(body, "^1k(%d+),") or 1), put = {} }
end

-- unhold looks at so many of those that wait for a key, from the first in line, and puts them back into their due sets:
-- as many as the key has room for into each, because which of the sets are still read is not known here. Room is taken
-- when a task is claimed, not by this; those that come too late wait again, where they were. Those whose set the call
-- did not declare stay, and unhold reports whether there are any. It notes in freed the sets that got some.
local function unhold(active, held, key, line, look, declared, freed)
  local n = line.limit - (num(redis.call("HGET", active, "k:" .. key)) or 0)
  if n <= 0 then
    return false
  end
  local low, high = held_range(key)
  line.room = line.room or n -- of those put back, some may have been claimed since: they count in n, and in put
  local put, stay = line.put, false
  for _, member in ipairs(redis.call("ZRANGEBYLEX", held, low, high, "LIMIT", 0, look or n)) do
    local due, set, id = string.match(string.sub(member, #key + 2), "^(%d+)\31([^\31]*)\31(.*)$")
    local count = put[set or ""] or 0
    if not id then
      redis.call("ZREM", held, member) -- no task of ours
    elseif not declared[set] then
      stay = true
    elseif count < line.room then
      redis.call("ZADD", set, due, id)
      undo("ZREM", set, id)
      redis.call("ZREM", held, member)
      undo("ZADD", held, 0, member)
      put[set], freed[set] = count + 1, true
    end
  end
  return stay
end

-- adjust adds to a number of active, and returns what it is then. One that cannot be read counts as none.
local function adjust(active, name, n)
  local had = redis.call("HGET", active, name)
  local is = (num(had) or 0) + n
  if is > 0 then
    redis.call("HSET", active, name, int(is))
  elseif had then
    redis.call("HDEL", active, name)
  end
  if had then
    undo("HSET", active, name, had)
  else
    undo("HDEL", active, name)
  end
  return is
end

-- unlimit gives back what claims took of their limits: the names behind <1f> in their values in the running hash. It
-- returns the keys among them, each once.
local function unlimit(active, values)
  local keys, seen = {}, {}
  for _, value in ipairs(values) do
    for name in string.gmatch(value, "\31([^\31]+)") do
      adjust(active, name, -1)
      if string.sub(name, 1, 2) == "k:" and not seen[name] then
        seen[name] = true
        keys[#keys + 1] = string.sub(name, 3)
      end
    end
  end
  return keys
end

-- turn_over lets those have a key who wait for it, in whichever lane, and reports whether there were any.
local function turn_over(tasks, active, held, keys, declared)
  local freed = {}
  for _, key in ipairs(keys) do
    local line = line_of(tasks, held, key)
    if line then
      unhold(active, held, key, line, chunk, declared, freed)
    end
  end
  return next(freed) ~= nil
end
