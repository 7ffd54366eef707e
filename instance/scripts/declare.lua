-- declare.lua asks for the right to declare schedules. The schedules in force are those of the newest release that is
-- present. So the leader may declare, unless a newer release, or a newer generation of its own release, has declared before
-- and is present. A release is present while it has a registered instance that does not drain, and for a while after its
-- last instance was lost. An older instance that leads meanwhile must not bring back schedules that the newer release
-- removed, nor prune those that it added. If a person tells the leader to read its schedules again, newer generations of its own
-- release do not count: they do not lead, so nobody would declare.
--
-- KEYS[1..15] see lib_elect.lua
-- ARGV[1] id  [2] generation  [3] epoch  [4] how long a release, or a generation, may be lost and count as present (ms)
-- ARGV[5] "1": a person asks for it
-- Returns {1 or 0, when 0: in how many ms to ask again}. The wait ends when all newer instances have left, or were lost
-- longer than ARGV[4] ago.
-- Errors: FENCED, NOTLEADER. O(instances + releases).
local alive, member = live(instances, members, ARGV[1], ARGV[2])
if not alive then
  return redis.error_reply("FENCED instance " .. ARGV[1])
end
local lead = redis.call("HMGET", leader, "id", "gen", "epoch")
if lead[1] ~= ARGV[1] or lead[2] ~= ARGV[2] or lead[3] ~= ARGV[3] then
  return redis.error_reply("NOTLEADER epoch " .. (lead[3] or "0"))
end
local m, grace = parse(member), tonumber(ARGV[4])

-- The generations and releases that are there, the generations that drain, and when each absent release was lost.
local gens, drains, orders, lost = {}, {}, {}, {}
for i, text in ipairs(redis.call("HGETALL", members)) do
  local other = i % 2 == 0 and parse(text) or {}
  if other.state == "d" then
    drains[other.gen] = true -- it has resigned, so it counts as absent
  elseif other.gen then
    gens[other.gen], orders[other.order] = true, true
  end
end
for i, text in ipairs(redis.call("HGETALL", releases)) do
  local order, gone = string.match(text, "^(%d+) (%d+)$")
  if i % 2 == 0 and order then
    lost[tonumber(order)] = tonumber(gone)
  end
end

-- present returns how much longer a generation that declared is present (ms), if nothing else happens: 0 if it is absent.
local function present(order, gen, gone)
  if gens[gen] then
    return math.huge
  end
  if order > 0 and order ~= m.order then
    if orders[order] then
      return math.huge
    end
    gone = lost[order] or 0 -- a release that left has no entry any more
  end
  return drains[gen] and 0 or math.max(gone + grace - now, 0)
end

local declared = redis.call("HGETALL", declarers)
local wait = 0
for i = 1, #declared, 2 do
  local order, gone = string.match(declared[i + 1], "^(%d+) (%d+)$")
  local gen = tonumber(declared[i]) or 0
  order, gone = tonumber(order or 0), math.min(tonumber(gone or 1), now) -- a damaged entry counts as lost long ago
  if gone == 0 and gen > 0 and not gens[gen] and not drains[gen] then -- no script noted the loss: count it from now
    gone = now
    redis.call("HSET", declarers, declared[i], int(order) .. " " .. int(gone))
  end
  local stays = present(order, gen, gone)
  if stays == 0 then
    redis.call("HDEL", declarers, declared[i])
  elseif order > m.order or order == m.order and gen > m.gen and ARGV[5] ~= "1" then
    wait = math.max(wait, stays)
  end
end
if wait > 0 then
  return { 0, math.min(wait, 1000) }
end
local had_order, had_gen = string.match(redis.call("HGET", meta, "declared") or "", "^(%d+) (%d+)")
had_order, had_gen = tonumber(had_order or 0), tonumber(had_gen or 0)
if had_order > m.order or had_order == m.order and had_gen > m.gen then
  record(events, cap_events, "event", "declares again", "instance", ARGV[1], "release", m.release)
end
redis.call("HSET", meta, "declared", int(m.order) .. " " .. int(m.gen) .. " " .. m.release)
redis.call("HSET", declarers, ARGV[2], int(m.order) .. " 0")
return { 1, 0 }
