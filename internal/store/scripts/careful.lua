-- careful.lua makes the script behind it note an undo for each command that writes. This costs a read for each write, so
-- scripts that are called all the time do without it, and call undo themselves: see lib.lua.

-- Before the script removes something, it tries once the command that would bring it back: the user may have the right to
-- remove but not the right to add. Before that it removes a member that does not exist. Redis accepts this even at maxmemory,
-- and after a first write it accepts all others.
local tried = {}
local function may_add(zset)
  if not tried.zset then
    tried.zset = true
    redis.call("ZREM", zset, nobody)
    redis.call("ZADD", zset, "XX", 0, nobody)
  end
end
local function may_set(hash, field, value)
  if not tried.hash then
    tried.hash = true
    redis.call("HDEL", hash, nobody)
    redis.call("HSET", hash, field, value)
  end
end

local noted = {
  HSET = function(key, ...)
    local pairs, fields = { ... }, {}
    for i = 1, #pairs, 2 do
      fields[#fields + 1] = pairs[i]
    end
    for i, had in ipairs(redis.call("HMGET", key, unpack(fields))) do
      if had then
        undo("HSET", key, fields[i], had)
      else
        undo("HDEL", key, fields[i])
      end
    end
  end,
  HDEL = function(key, ...)
    local fields = { ... }
    for i, had in ipairs(redis.call("HMGET", key, ...)) do
      if had then
        may_set(key, fields[i], had)
        undo("HSET", key, fields[i], had)
      end
    end
  end,
  ZADD = function(key, score, ...)
    if score == "XX" then
      return
    end
    local list = { score, ... }
    if not tried.remove then
      tried.remove = true
      redis.call("ZREM", key, nobody)
    end
    for i = 2, #list, 2 do
      local had = redis.call("ZSCORE", key, list[i])
      if had then
        undo("ZADD", key, had, list[i])
      else
        undo("ZREM", key, list[i])
      end
    end
  end,
  ZREM = function(key, ...)
    for _, member in ipairs({ ... }) do
      local had = redis.call("ZSCORE", key, member)
      if had then
        may_add(key)
        undo("ZADD", key, had, member)
      end
    end
  end,
  ZINCRBY = function(key, _, member)
    undo("ZADD", key, redis.call("ZSCORE", key, member), member)
  end,
}

local function note_rows(zset, rows)
  if #rows > 0 then
    may_add(zset)
    undo_removed(zset, rows, #rows / 2)
  end
end
function noted.ZREMRANGEBYSCORE(zset, low, high)
  note_rows(zset, redis.call("ZRANGEBYSCORE", zset, low, high, "WITHSCORES"))
end
function noted.DEL(zset)
  note_rows(zset, redis.call("ZRANGE", zset, 0, -1, "WITHSCORES"))
end

write = function(command, key, ...)
  if noted[command] then
    noted[command](key, ...)
  end
  local reply = redis.call(command, key, ...)
  if command == "XADD" then
    undo("XDEL", key, reply)
  end
  return reply
end
local redis = { call = write, pcall = redis.pcall, error_reply = redis.error_reply, sha1hex = redis.sha1hex }
