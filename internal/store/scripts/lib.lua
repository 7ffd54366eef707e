-- lib.lua is put before every script: the clock of Redis, helpers that touch only the keys they are given, and the
-- code that makes each script happen whole or not at all. Go puts all that follows into a function, and whole (see below) runs it.

-- now is the present in whole milliseconds, by the only clock that counts.
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- int writes a whole number without an exponent; tostring would print 1.7e+15.
local function int(n)
  return string.format("%.0f", n)
end

-- num reads a whole number that a script wrote. It returns nil for any other text, and for a number that is too large for
-- Lua: a damaged entry counts as absent, so that it stops no instance.
local function num(text)
  local n = text and string.find(text, "^%d+$") and tonumber(text)
  return n and n < 9e15 and n or nil
end

-- chunk is how many values one command takes at most: Lua's unpack has a limit of about 8,000.
local chunk = 2000

-- write is redis.call, or its replacement in a script that begins with careful.lua.
local write = redis.call

-- many calls a variadic command with a list of any length, in as few calls as unpack allows.
local function many(command, key, list)
  for i = 1, #list, chunk do
    write(command, key, unpack(list, i, math.min(i + chunk - 1, #list)))
  end
end

-- nobody is a field, or member, that no key has. To remove it changes nothing, and shows that the user has the right to
-- remove and that the key has the right type.
local nobody = "\0"

-- undos take back what a script has done so far. Each is a command with its key and values, or a function. If Redis refuses
-- something later on (the user lacks a right, a key is of another type, an entry is damaged), whole runs all undos, the
-- last one first.
local undos = {}
local function undo(...)
  undos[#undos + 1] = { ... }
end

-- undo_added takes members, of which a list has each behind its score, out of a sorted set again.
local function undo_added(zset, list)
  undos[#undos + 1] = function()
    for i = 2, #list, 2 do
      redis.pcall("ZREM", zset, list[i])
    end
  end
end

-- undo_removed brings back the first n members of rows, each with its score behind it.
local function undo_removed(zset, rows, n)
  undos[#undos + 1] = function()
    for i = 1, 2 * n, 2 do
      redis.pcall("ZADD", zset, rows[i + 1], rows[i])
    end
  end
end

-- removals are done when all else is done, because no undo could bring back what they remove. remove_last adds one: the
-- values from first to last of a list.
local removals = {}
local function remove_last(command, key, list, first, last)
  if (last or #list) >= (first or 1) then
    removals[#removals + 1] = { command, key, list, first or 1, last or #list }
  end
end

-- failure returns an error of redis.call, or of Lua, as an error reply. Before Redis 7 an error of redis.call is a text that
-- also says where in the script it happened.
local function failure(err)
  if type(err) == "table" then
    return err
  end
  local text = string.gsub(err, "^@?[%w_]*: ?%d+: %-?", "")
  return redis.error_reply(string.find(text, "^%u+ ") and text or "ERR " .. text)
end

-- try_removal finds out whether Redis lets the script remove something from a key, by removing nobody. It does so once.
local removable = {} -- key -> the command that was tried on it
local function try_removal(command, key)
  if removable[key] ~= command then
    redis.call(command, key, nobody)
    removable[key] = command
  end
end

-- finish does the removals. Before it does any of them, it tries each: a refusal then comes while the script can still take
-- back everything.
local function finish(reply)
  for _, r in ipairs(removals) do
    try_removal(r[1], r[2])
  end
  for _, r in ipairs(removals) do
    for i = r[4], r[5], chunk do
      redis.call(r[1], r[2], unpack(r[3], i, math.min(i + chunk - 1, r[5])))
    end
  end
  return reply
end

-- whole runs the body of a script. If Redis refuses any part of it, whole takes back all the rest.
local function whole(body)
  local ok, reply = pcall(function() return finish(body()) end)
  if ok then
    return reply
  end
  for i = #undos, 1, -1 do
    if type(undos[i]) == "function" then
      undos[i]()
    else
      redis.pcall(unpack(undos[i]))
    end
  end
  return failure(reply)
end

-- tell publishes a message, and returns how many received it, or an error. Messages can be lost, so nothing depends on one,
-- nor on the right to send it.
local function tell(channel, text)
  return redis.pcall("PUBLISH", channel, text)
end

-- record appends one entry to a capped stream: what, then pairs of field and value.
local function record(stream, cap, ...)
  write("XADD", stream, "MAXLEN", "~", cap, "*", ...)
end

-- given returns those pairs of field and value that have a value.
local function given(...)
  local pairs, kept = { ... }, {}
  for i = 1, select("#", ...), 2 do
    if pairs[i + 1] and pairs[i + 1] ~= "" then
      kept[#kept + 1], kept[#kept + 2] = pairs[i], pairs[i + 1]
    end
  end
  return kept
end

-- live reports whether an instance is registered in this generation and its lease runs. An instance whose entry is damaged
-- is not live: it registers again, which mends the entry.
local function live(instances, members, id, gen)
  local member = redis.call("HGET", members, id)
  if not member or string.match(member, "^(%d+) %d+ %a %d %a+ %a+") ~= gen then
    return false
  end
  local lease = redis.call("ZSCORE", instances, id)
  return lease and tonumber(lease) > now, member
end

-- may reports whether a registered instance may claim now, by the leader's rule. lead has the fields id, gen, order,
-- consume, open and pause of leader. No pause is longer than ten minutes, and the clock may have been set back by as much
-- since; another program wrote a pause that ends later.
local function may(lead, id, gen, member)
  local pause = num(lead[6]) or 0
  if lead[5] ~= "1" or pause > now and pause <= now + 1200000 then
    return false
  end
  if lead[1] == id and lead[2] == gen then
    return true
  end
  local order, state = string.match(member, "^%d+ (%d+) (%a)")
  return state == "r" and (lead[4] == "all" or lead[4] == "release" and lead[3] == order)
end
