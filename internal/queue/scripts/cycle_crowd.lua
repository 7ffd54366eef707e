-- cycle_crowd.lua is the part of cycle.lua that keeps one schedule from taking all workers of the caller. cycle.lua names the
-- keys and arguments. While tasks of others are due, a schedule may take half of the workers, one at least. Slots beyond that
-- are passed over, and cycle_claim.lua takes them only if it finds no others.
--
-- The ID of a slot names its schedule: "name@milliseconds". A schedule that has taken an eighth of the workers or fewer counts
-- as if it had taken none, because the caller does not say so.

local few = 32 -- fewer tasks are all looked at: to find out whether they are alike, or due at once, would cost more
local half, largest, taken = math.huge, 0, {} -- taken: "name@" -> how many workers it has taken; largest: the largest of these
local workers = tonumber(string.match(ARGV[14], "^%d+"))
if workers > 0 then
  half = math.max(math.floor(workers / 2), 1)
  for name, n in string.gmatch(ARGV[14], "\31([^\31]+)\31(%d+)") do
    taken[name .. "@"] = tonumber(n)
    largest = math.max(largest, tonumber(n))
  end
end
local scarce = want + largest > half -- whether a schedule could get more than half by this call

-- A schedule may have more slots due than a call can look at. So a call looks at this many tasks behind the first, and at as
-- many of those that fell due last: a task that fell due since the call before is one of them.
local beyond = math.max(want, 100)
local glances = 6 -- how often one call looks at so many

-- crowds reports whether a task is a slot of a schedule that may take no more workers. If not, it counts the slot as taken.
local last -- the start of the last such slot's id: mostly the next id has the same start
local function crowds(id)
  if last and string.find(id, last, 1, true) == 1 then
    return true
  end
  local name = string.match(id, "^[^@]+@")
  local n = name and (taken[name] or 0)
  if not name then
    return false
  elseif n < half then
    taken[name] = n + 1
    return false
  end
  last = name
  return true
end

-- alike reports whether a schedule may have most of the ids. Of a long list it looks at three, because to look at all would cost
-- much. If it is wrong, the caller says in its next call that a schedule has taken many workers.
local function alike(ids, found)
  if found < few then
    return true
  end
  local names = {}
  for i, at in ipairs({ 1, math.ceil(found / 2), found }) do
    names[i] = string.match(ids[at], "^[^@]+@") or i -- a number is like no other
  end
  return names[1] == names[2] or names[2] == names[3] or names[3] == names[1]
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
          list[count], times[count] = id, redis.call("ZSCORE", lane.key, id) -- of few: to print all scores would cost more
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
