-- ask.lua is called for a person who asks an instance to resign or to drain. If the instance leads, another one is elected in
-- the same step.
--
-- An instance that was asked to resign stays ready, and takes work like any other. Elections pass it over as long as another
-- candidate is ready that was not asked: see elect. If the person asks the last one of those too, the earlier requests end,
-- and one of the instances that they were for leads.
--
-- An instance that was asked to drain takes no more work from here on. It hears of the request with its next heartbeat, and
-- then does what it does at SIGTERM.
--
-- KEYS[1..15] see lib_elect.lua
-- ARGV[1] id  [2] resign or drain  [3] who asks
-- Returns {what became of the request, view...}: "done", also if it had been asked before; "unknown": no such instance is
-- registered; "alone": it should resign, and no other instance could lead.
-- O(instances + requests).
sweep()
local id, what = ARGV[1], ARGV[2]
local m = parse(redis.call("HGET", members, id))

-- others returns the other instances that could lead and are not suspected: those that were not asked to resign and those that were.
local function others()
  local free, resigned, suspected = {}, {}, suspicions()
  for _, other in ipairs(living()) do
    local o = parse(redis.call("HGET", members, other))
    if other ~= id and o.state == "r" and not o.standby and not suspected(other, o) then
      o.id = other
      table.insert(o.resigned and resigned or free, o)
    end
  end
  return free, resigned
end

-- keep notes the request, and drops those that are too old: the process was killed, or it would have come back.
local function keep()
  local all = redis.call("HGETALL", asked)
  for i = 1, #all, 2 do
    local at = num(string.match(all[i + 1], " (%d+)$"))
    if not at or at + asks_kept <= now then
      redis.call("HDEL", asked, all[i])
    end
  end
  ask(id, int(m.gen), what)
  record(events, cap_events, "event", what == "drain" and "asked to drain" or "asked to resign", "instance", id,
    "release", m.release, "by", ARGV[3])
end

local function resign()
  local free, resigned = others()
  if #free + #resigned == 0 then
    return "alone"
  end
  keep()
  m.resigned = true
  redis.call("HSET", members, id, pack(m))
  for _, o in ipairs(#free == 0 and resigned or {}) do
    recall(o)
  end
  elect()
  return "done"
end

local function drain()
  keep()
  m.resigned = false
  become(id, m, "d")
  unwatch(id)
  relieve(id)
  elect()
  tell(channel .. ":" .. id, "asked")
  return "done"
end

local came
if not m.gen then
  came = "unknown"
elseif m.state == "d" or what == "resign" and (m.standby or m.resigned) then
  came = "done"
else
  came = what == "drain" and drain() or resign()
end
return { came, unpack(view()) }
