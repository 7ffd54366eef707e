-- lib.lua is put before every script: the clock of Redis, and helpers that touch only the keys they are given.

-- now is the present in whole milliseconds, by the only clock that counts.
local clock = redis.call("TIME")
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- int writes a whole number without an exponent; tostring would print 1.7e+15.
local function int(n)
  return string.format("%.0f", n)
end

-- chunk is how many values one command takes at most: Lua's unpack has a limit of about 8,000.
local chunk = 2000

-- many calls a variadic command with a list of any length, in as few calls as unpack allows.
local function many(command, key, list)
  for i = 1, #list, chunk do
    redis.call(command, key, unpack(list, i, math.min(i + chunk - 1, #list)))
  end
end

-- record appends one entry to a capped stream: what, then pairs of field and value.
local function record(stream, cap, ...)
  redis.call("XADD", stream, "MAXLEN", "~", cap, "*", ...)
end

-- live says whether an instance, in this generation, is registered and its lease runs.
local function live(instances, members, id, gen)
  local member = redis.call("HGET", members, id)
  if not member or string.match(member, "^%d+") ~= gen then
    return false
  end
  local lease = redis.call("ZSCORE", instances, id)
  return lease and tonumber(lease) > now, member
end

-- may says whether a registered instance may take work now, by the leader's rule. lead is what leader holds of id, gen,
-- order, consume and open.
local function may(lead, id, gen, member)
  if lead[5] ~= "1" then
    return false
  end
  if lead[1] == id and lead[2] == gen then
    return true
  end
  local order, state = string.match(member, "^%d+ (%d+) (%a)")
  return state == "r" and (lead[4] == "all" or lead[4] == "release" and lead[3] == order)
end
