-- lib_held.lua: tasks that wait for their key, and the counts of running tasks by key and type.
--
-- A held member is KEY <1f> DUE <1f> DUE-SET <1f> ID. All have score 0, so the members of one key lie together, sorted by
-- due time. No ID contains the separator: control characters are refused at the edge. The due time of a task on time has
-- 16 digits, that of a task that is behind has 13. So until 2286 tasks behind sort after tasks on time, also for an older
-- release, which knows nothing of them.

local function held_range(key)
  return "[" .. key .. "\31", "[" .. key .. "\32"
end

-- on_time_range is the range of the tasks on time.
local function on_time_range(key)
  return "[" .. key .. "\31", "(" .. key .. "\031001"
end

-- hold makes a due task wait for its key.
local function hold(held, key, due, set, id, behind)
  local digits = string.format(behind and "%013.0f" or "%016.0f", tonumber(due))
  local member = table.concat({ key, digits, set, id }, "\31")
  redis.call("ZADD", held, 0, member)
  undo("ZREM", held, member)
end

-- line_of returns nil if no task waits for a key. Else it returns the key's limit, as the record of the first in line says,
-- and put: due set -> how many tasks unhold has put back there.
local function line_of(tasks, held, key)
  local low, high = held_range(key)
  local first = redis.call("ZRANGEBYLEX", held, low, high, "LIMIT", 0, 1)[1]
  if not first then
    return nil
  end
  local body = redis.call("HGET", tasks, string.match(first, "([^\31]*)$"))
  return { limit = tonumber(body and string.match(body, "^[12]k(%d+),") or 1), put = {} }
end

-- unhold looks at the first tasks that wait for a key (look of them, or as many as there is room), and puts them back into
-- their due sets. Each due set gets as many as the key has room for, because unhold does not know which sets an instance
-- still reads. A claim takes the room, not unhold: tasks that come too late wait again, at their old place.
--
-- Tasks whose due set the call did not declare keep waiting; unhold reports whether there are any. It marks in freed the
-- due sets that got a task.
local function unhold(active, held, key, line, look, declared, freed)
  local n = line.limit - (num(redis.call("HGET", active, "k:" .. key)) or 0)
  if n <= 0 then
    return false
  end
  local low, high = held_range(key)
  line.room = line.room or n -- the room at first: a task put back and claimed since lowers n, and counts in put too
  local put, stay = line.put, false
  for _, member in ipairs(redis.call("ZRANGEBYLEX", held, low, high, "LIMIT", 0, look or n)) do
    local due, set, id = string.match(string.sub(member, #key + 2), "^(%d+)\31([^\31]*)\31(.*)$")
    local count = put[set or ""] or 0
    if not id then
      redis.call("ZREM", held, member) -- damaged: onbeat wrote no such member
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

-- adjust adds n to a count in active, and returns the new count. A count that cannot be read counts as 0.
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

-- unlimit counts claims off their limits: the names after <1f> in their values in the running hash. It returns the keys
-- among them, each once.
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

-- turn_over puts tasks that wait for the given keys back into any declared lane, and reports whether there were any.
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
