-- cycle_crowd.lua is the part of cycle.lua that keeps one schedule from taking all workers of the caller. cycle.lua names the
-- keys and arguments. While tasks of others are due, a schedule may take half of the workers, one at least. Slots beyond that
-- are passed over, and cycle_claim.lua takes them only if it finds no others.
--
-- The ID of a slot names its schedule: "name@milliseconds". A schedule that has taken an eighth of the workers or fewer counts
-- as if it had taken none, because the caller does not say so.

local half, largest, taken = math.huge, 0, {} -- taken: schedule -> how many workers it has taken; largest: the largest of these
local workers = tonumber(string.match(ARGV[14], "^%d+"))
if workers > 0 then
  half = math.max(math.floor(workers / 2), 1)
  for name, n in string.gmatch(ARGV[14], "\31([^\31]+)\31(%d+)") do
    taken[name] = tonumber(n)
    largest = math.max(largest, taken[name])
  end
end
local scarce = want + largest > half -- whether a schedule could get more than half by this call

-- A schedule may have more slots due than a call can look at. So a call looks at this many tasks behind the first, and at as
-- many of those that fell due last: a task that fell due since the call before is one of them.
local beyond = math.max(want, 100)
local glances = 6 -- how often one call looks at so many

-- crowds reports whether a task is a slot of a schedule that may take no more workers. If not, it counts the slot as taken.
local function crowds(id)
  local name = string.match(id, "^([^@]+)@")
  local n = name and (taken[name] or 0)
  if name and n < half then
    taken[name] = n + 1
  end
  return name and n >= half
end

-- pass_over chooses up to n due tasks of a lane, among them those of the first ones whose schedules may take more workers. It
-- returns how many it chose, their ids and due times, and whether they are other than the first ones. If the lane is alone in
-- having due tasks, and pass_over finds no others, it returns the first ones.
local function pass_over(lane, n, alone, found, ids, dues)
  local list, times, count = {}, {}, 0
  local same = type(dues) == "string" and dues
  for i = 1, found do
    if not crowds(ids[i]) then
      count = count + 1
      list[count], times[count] = ids[i], same or dues[i]
    end
  end
  if count == found then
    return found, ids, dues, false
  end
  local due, first = redis.call("ZCOUNT", lane.key, "-inf", int(now)), count
  for _, from in ipairs({ found, math.max(found + beyond, due - beyond) }) do
    if count < n and from < due and glances > 0 then
      glances = glances - 1
      for _, id in ipairs(redis.call("ZRANGE", lane.key, from, math.min(from + beyond, due) - 1)) do
        if count < n and not crowds(id) then
          count = count + 1
          list[count], times[count] = id, redis.call("ZSCORE", lane.key, id)
        end
      end
    end
  end
  if alone and count == first then
    return found, ids, dues, false
  end
  lane.first, lane.passed = nil, count < n
  return count, list, times, true
end
