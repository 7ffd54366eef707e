-- lib_held.lua: tasks that wait for their key, and the count of running tasks a key.
--
-- A held member is KEY <1f> DUE <1f> DUE-SET <1f> ID, all with score 0, so that the members of one key lie together
-- in due order. An ID may not contain the separator: control characters are refused at the edge.

local function held_range(key)
  return "[" .. key .. "\31", "[" .. key .. "\32"
end

-- hold parks a due task behind its key.
local function hold(held, key, due, set, id)
  redis.call("ZADD", held, 0, table.concat({ key, string.format("%016.0f", tonumber(due)), set, id }, "\31"))
end

-- unhold puts the first task that waits for a key back into its due set. It leaves it, and says so, when that set is
-- none of the keys this call declared.
local function unhold(held, key, declared)
  local low, high = held_range(key)
  local first = redis.call("ZRANGEBYLEX", held, low, high, "LIMIT", 0, 1)[1]
  if not first then
    return nil
  end
  local due, set, id = string.match(string.sub(first, #key + 2), "^(%d+)\31([^\31]*)\31(.*)$")
  if not declared[set] then
    return "undeclared"
  end
  redis.call("ZREM", held, first)
  redis.call("ZADD", set, due, id)
  return "moved", set
end

-- unlimit gives back what a claim took of its limits: the names behind <1f> in its value in the running hash. It notes
-- in freed the due sets that it put a waiting task back into.
local function unlimit(active, held, value, declared, freed)
  for name in string.gmatch(value, "\31([^\31]+)") do
    if redis.call("HINCRBY", active, name, -1) <= 0 then
      redis.call("HDEL", active, name)
    end
    if string.sub(name, 1, 2) == "k:" then
      local what, set = unhold(held, string.sub(name, 3), declared)
      if what == "moved" then
        freed[set] = true
      end
    end
  end
end
