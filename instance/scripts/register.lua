-- register.lua takes an instance into the registry, as a new generation. It does not lead or take work before it is
-- ready (state.lua).
--
-- KEYS[1..6] see lib_elect.lua
-- KEYS[7] details  hash  id -> JSON for people
-- KEYS[8] releases hash  release -> "order gone", gone: when its last instance was lost, 0 while any lives
-- KEYS[9] orphans  zset  generation -> when it was declared dead
-- ARGV[1] id  [2] lease ms  [3] standby 0|1  [4] lead  [5] consume  [6] release  [7] details
-- ARGV[8] how long a release may be lost before it counts as absent (ms)
-- ARGV[9] the largest generation the caller knows of, or 0: the next is larger, even if Redis lost its memory
-- Returns {generation, order, view...}. O(instances).
--
-- A release is newer the later it was first seen after being absent. Leaving cleanly makes it absent at once, so that
-- a rollback is newest again; being lost does not for a while, so that a crashed instance of an old release that
-- comes back in the middle of a rollout is still of the old release.
local details, releases, orphans = KEYS[7], KEYS[8], KEYS[9]
local id, release = ARGV[1], ARGV[6]

local before = parse(redis.call("HGET", members, id))
if before.gen then
  redis.call("ZADD", orphans, now, int(before.gen))
end
local known = tonumber(ARGV[9]) or 0
if known > tonumber(redis.call("HGET", meta, "gen") or 0) then
  redis.call("HSET", meta, "gen", int(known))
end
local gen, order = rise("gen"), 0
if release ~= "" then
  local had, gone = string.match(redis.call("HGET", releases, release) or "", "^(%d+) (%d+)$")
  if had and (gone == "0" or now - tonumber(gone) < tonumber(ARGV[8])) then
    order = tonumber(had)
  else
    order = rise("order")
  end
  redis.call("HSET", releases, release, int(order) .. " 0")
end
redis.call("HSET", members, id, pack({
  gen = gen, order = order, state = "s", standby = ARGV[3] == "1", lead = ARGV[4], consume = ARGV[5], release = release,
}))
redis.call("HSET", details, id, ARGV[7])
redis.call("ZADD", instances, now + tonumber(ARGV[2]), id)
record(events, cap_events, "event", "joined", "instance", id, "release", release, "generation", int(gen))
if before.gen then
  elect()
end
return { int(gen), int(order), unpack(view()) }
