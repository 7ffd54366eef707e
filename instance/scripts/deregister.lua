-- deregister.lua removes an instance for good. From then on other instances can recover the tasks that it still runs.
--
-- KEYS[1..15] see lib_elect.lua
-- KEYS[16] running hash of the generation
-- ARGV[1] id  [2] generation
-- Returns view. It is no error if the instance is not registered. O(instances).
local id, running = ARGV[1], KEYS[16]
local m = parse(redis.call("HGET", members, id))
if m.gen and int(m.gen) == ARGV[2] then
  redis.call("ZREM", instances, id)
  redis.call("HDEL", members, id)
  redis.call("HDEL", details, id)
  redis.call("HDEL", suspects, id)
  unwatch(id)
  relieve(id)
  redis.call("HDEL", running, "")
  if redis.call("EXISTS", running) == 1 then
    redis.call("ZADD", orphans, now, ARGV[2])
    hasten()
  end
  over(m, 0)
  sweep()
  if m.release ~= "" and not remains(m.release) then
    absent(m.release)
  end
  record(events, cap_events, "event", "left", "instance", id, "release", m.release)
  elect()
end
if asked_of(id, ARGV[2]) then
  redis.call("HDEL", asked, id)
end
return view()
