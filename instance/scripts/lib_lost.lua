-- lib_lost.lua drops the instances whose lease ran out. It comes after lib_elect.lua, which names the keys, before every
-- script of the registry.

-- lose takes release -> lease end for the releases of lost instances, and marks those without an instance as lost. A lease
-- end of 0 means that all these instances had resigned: then the release counts as having left, though its instances were
-- killed before they could deregister. O(instances).
local function lose(ends)
  local all = redis.call("HGETALL", members)
  for i = 2, #all, 2 do
    ends[parse(all[i]).release] = nil
  end
  for release, lease_end in pairs(ends) do
    local order = string.match(redis.call("HGET", releases, release) or "", "^%d+")
    if lease_end == 0 then
      absent(release)
    elseif order then
      redis.call("HSET", releases, release, order .. " " .. int(lease_end))
    end
  end
end

-- over notes that a generation is gone: lost is when it was lost, or 0 if it left.
local function over(m, lost)
  local gen = int(m.gen)
  local order = string.match(redis.call("HGET", declarers, gen) or "", "^%d+")
  if order and lost > 0 then
    redis.call("HSET", declarers, gen, order .. " " .. int(lost))
  elseif order then
    redis.call("HDEL", declarers, gen)
  end
  local proves = redis.call("ZSCORE", trial, gen)
  redis.call("ZREM", trial, gen)
  if proves and lost > 0 and m.state == "r" then
    -- Several instances that were lost together are one strike: the next strike needs one that became ready after it.
    local n, at = string.match(redis.call("HGET", strikes, m.release) or "0 0", "^(%d+) (%d+)$")
    if tonumber(proves) - proof > tonumber(at or 0) then
      redis.call("HSET", strikes, m.release, int((n or 0) + 1) .. " " .. int(now))
    end
  end
end

-- unwatch removes an instance from the watchers. Others of its kind relied on it, so one of them looks in its place, at the
-- same moment. O(instances).
local function unwatch(id)
  local list = redis.call("ZRANGE", watch, 0, -1, "WITHSCORES")
  for i = 1, #list, 2 do
    local who, reads = watcher(list[i])
    if who == id then
      redis.call("ZREM", watch, list[i])
      wake(watch, channel, tonumber(list[i + 1]), reads)
    end
  end
end

-- hasten makes the leader take back the runs of a lost generation at once. Otherwise the leader would hear of them with its
-- next heartbeat, and until then slots would be skipped because they overlap a run that is known to be dead.
local function hasten()
  local id = redis.call("HGET", leader, "id")
  if id and id ~= "" then
    tell(channel .. ":" .. id, "lost")
  end
end

-- sweep drops the instances whose lease ran out. If there are any, it elects, and returns true. Every script that changes the
-- registry calls it first, so that the present leader is known before the change.
local function sweep()
  local lost = redis.call("ZRANGEBYSCORE", instances, "-inf", now, "WITHSCORES", "LIMIT", 0, 100)
  if #lost == 0 then
    return false
  end
  local ends = {}
  for i = 1, #lost, 2 do
    local id, lease_ends = lost[i], tonumber(lost[i + 1])
    local lease_end = lease_ends
    ended[id] = lease_end
    local member = redis.call("HGET", members, id)
    local m, gen = parse(member), generation(member)
    redis.call("ZREM", instances, id)
    redis.call("HDEL", members, id)
    local on, length = host(id), num(string.match(redis.call("HGET", details, id) or "", '"lease_ms":(%d+)'))
    redis.call("HDEL", details, id)
    redis.call("HDEL", suspects, id)
    unwatch(id)
    if gen then
      redis.call("ZADD", orphans, now, int(gen))
    end
    if m.gen then
      if m.state == "d" then
        lease_end = 0
      end
      if m.resigned then
        ask(id, int(m.gen), "resign") -- its entry is gone: the day for which a request is kept begins now
      end
      over(m, lease_end)
      if m.release ~= "" then
        ends[m.release] = math.max(ends[m.release] or 0, lease_end)
      end
      record(events, cap_events, "event", "lost", "instance", id, "release", m.release, "generation", int(m.gen),
        "lease", int(lease_ends), unpack(given("host", on, "seen", length and int(lease_ends - length))))
    end
  end
  lose(ends)
  elect()
  hasten()
  return true
end
