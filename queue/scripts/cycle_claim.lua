-- cycle_claim.lua is the second half of cycle.lua, which names keys and arguments: it settles, claims, and replies.

-- permitted says whether this instance may take work now, by the leader's rule.
local function permitted()
  local lead = redis.call("HMGET", leader, "id", "gen", "order", "consume", "open")
  if lead[5] ~= "1" then
    return false
  end
  if lead[1] == id and lead[2] == gen then
    return true
  end
  local order, state = string.match(member, "^%d+ (%d+) (%a)")
  return state == "r" and (lead[4] == "all" or lead[4] == "release" and lead[3] == order)
end

local skipped, notes = 0, {}
local prefix -- "fence claimed ", made when the first task is claimed: one fence a claim
local entries = { "", int(seq) }
local looks = 2 * want + 100 -- tasks whose key is taken cost a look, and are no claim
local counters = redis.call("HMGET", meta, "fence", "lanes")
local fence = tonumber(counters[1] or 0)

local function claim_value(due)
  if not prefix then
    fence = math.max(fence + 1, now * 1000)
    redis.call("HSET", meta, "fence", int(fence))
    prefix = int(fence) .. " " .. int(now) .. " "
  end
  return prefix .. due
end

-- conflict settles what happens to a task whose key is taken. It returns true if the task may run after all.
local function conflict(lane, task, due, key, limit, policy)
  if tonumber(redis.call("HGET", active, "k:" .. key) or 0) < limit then
    return true
  end
  local low, high = held_range(key)
  local drop = {}
  if policy == "s" or policy == "q" and redis.call("ZLEXCOUNT", held, low, high) > 0 then
    drop[1] = task
  else
    if policy == "r" then
      for _, waiting in ipairs(redis.call("ZRANGEBYLEX", held, low, high, "LIMIT", 0, chunk)) do
        redis.call("ZREM", held, waiting)
        drop[#drop + 1] = string.match(waiting, "([^\31]*)$")
      end
      redis.call("HSET", cancel, "k:" .. key, int(fence) .. " " .. int(now) .. " replaced")
      redis.call("PUBLISH", channel, "cancel")
    end
    hold(held, key, due, lane.key, task)
  end
  many("HDEL", tasks, drop)
  for _, gone in ipairs(drop) do
    notes[#notes + 1] = gone .. " skipped overlap"
  end
  skipped = skipped + #drop
  return false
end

-- head is the due time of a lane's first task, or false.
local function head(lane)
  if lane.first == nil then
    local first = redis.call("ZRANGE", lane.key, 0, 0, "WITHSCORES")
    lane.first = first[2] and tonumber(first[2]) or false
  end
  return lane.first
end

-- fitting is how many of the records fit into the reply: at least the first of a call, whatever its size.
local room = 4 * 1024 * 1024
local function fitting(records)
  for i = 1, #records do
    local size = records[i] and #records[i] or 0
    if size > room and room < 4 * 1024 * 1024 then
      room, looks = 0, 0
      return i - 1
    end
    room = room - size
  end
  return #records
end

-- take looks at up to n due tasks of a lane, which there are, and returns how many of them it claimed.
local function take(lane, n)
  if lane.limit > 0 then
    lane.slot = lane.slot or "t:" .. string.match(lane.name, "[^|]*$")
    n = math.min(n, lane.limit - tonumber(redis.call("HGET", active, lane.slot) or 0))
    if n <= 0 then
      lane.full = true
      return 0
    end
  end
  -- One more than asked for, which says what is due next.
  local rows = redis.call("ZRANGE", lane.key, 0, n, "WITHSCORES")
  local ids, dues = {}, {}
  lane.first = false
  for i = 1, #rows, 2 do
    local due = tonumber(rows[i + 1])
    if #ids == n or due > now then
      lane.first = due
      break
    end
    ids[#ids + 1], dues[#dues + 1] = rows[i], rows[i + 1]
  end
  if #ids == 0 then -- nothing is due, and the ranks from 0 to -1 would be all
    return 0
  end
  local records = redis.call("HMGET", tasks, unpack(ids))
  local fit = fitting(records)
  if fit < #ids then -- the rest is left behind, and taken by the next call
    lane.first = tonumber(dues[fit + 1])
    if fit == 0 then
      return 0
    end
  end
  looks = math.max(looks - fit, 0)
  redis.call("ZREMRANGEBYRANK", lane.key, 0, fit - 1)
  local out = lane.out or { {}, {}, {}, {} }
  lane.out = out
  local before = #out[1]
  local count = before
  for i = 1, fit do
    local body, tail = records[i], ""
    local run = body ~= false
    local limit, policy, length, stop
    if run and string.byte(body, 2) == 107 then
      limit, policy, length, stop = string.match(body, "^1k(%d+),(%a)(%d+):()")
    end
    if limit then
      local key = string.sub(body, stop, stop + length - 1)
      run = conflict(lane, ids[i], dues[i], key, tonumber(limit), policy)
      if run then
        redis.call("HINCRBY", active, "k:" .. key, 1)
        tail = "\31k:" .. key
      end
    end
    if run then
      if lane.limit > 0 then
        tail = tail .. "\31" .. lane.slot
      end
      count = count + 1
      out[1][count], out[2][count], out[3][count], out[4][count] = ids[i], dues[i], #body, body
      entries[#entries + 1] = ids[i]
      entries[#entries + 1] = claim_value(dues[i]) .. tail
    end
  end
  if lane.limit > 0 and count > before then
    redis.call("HINCRBY", active, lane.slot, count - before)
  end
  return count - before
end

-- share claims from the lanes of one group (one queue and priority, several types): the longest waiting first, and an
-- even share for each, so that a flood of one type holds up no other.
local function share(group, n)
  local left = n
  while left > 0 and looks > 0 do
    local due = {}
    for _, lane in ipairs(group) do
      local first = not lane.full and head(lane)
      if first and first <= now then
        due[#due + 1] = lane
      end
    end
    if #due == 0 then
      break
    end
    table.sort(due, function(a, b) return a.first < b.first end)
    local part = math.ceil(left / #due)
    for _, lane in ipairs(due) do
      local most = math.min(part, left, looks)
      if most > 0 then
        left = left - take(lane, most)
      end
    end
  end
  return n - left
end

-- watching counts those who will have looked, at a moment, for whoever reads the same lanes.
local function watching(due)
  local n = 0
  for _, member in ipairs(redis.call("ZRANGEBYSCORE", watch, "-inf", int(due))) do
    local _, theirs = watcher(member)
    n = n + (theirs == reads and 1 or 0)
  end
  return n
end

settle()

local flags, next_due = 0, -1
if permitted() then
  flags = 1
  local left, i = want, 1
  while i <= #lanes do
    local group = {}
    local name = lanes[i].group
    while i <= #lanes and lanes[i].group == name do
      if lanes[i].limit >= 0 then
        group[#group + 1] = lanes[i]
      end
      i = i + 1
    end
    if left > 0 then
      left = left - share(group, left)
    end
    for _, lane in ipairs(group) do
      local first = not lane.full and head(lane)
      if first and (next_due < 0 or first < next_due) then
        next_due = first
      end
    end
  end
  if next_due >= 0 and next_due <= now then
    flags = flags + 4
    wake(watch, channel, now, reads)
  elseif left > 0 then
    -- Two watch the next due time closely; the others wait until they are told, or a heartbeat finds it overslept.
    local due = next_due < 0 and never or next_due
    if next_due < 0 or watching(due) < 2 then
      flags = flags + 2
    else
      due = never
    end
    redis.call("ZADD", watch, due, me)
  elseif next_due >= 0 then -- it has no worker free to take what comes next: another looks in its place
    wake(watch, channel, next_due, reads)
  end
end

if stirred and (flags == 0 or want == 0 or away) then -- this instance will not look itself
  wake(watch, channel, stirred)
end

many("HSET", running, entries)
if #notes > 0 then
  record(history, ARGV[5], "runs", table.concat(notes, "\n"), "gen", gen)
end

local reply = {
  clock[1] * 1000000 + clock[2], next_due, flags, tonumber(counters[2] or 0), fence, table.concat(void, ","), skipped,
}
for _, lane in ipairs(lanes) do
  if lane.out and #lane.out[1] > 0 then
    local out, n = lane.out, #reply
    reply[n + 1] = lane.number
    reply[n + 2] = table.concat(out[1], "\n")
    reply[n + 3] = table.concat(out[2], "\n")
    reply[n + 4] = table.concat(out[3], "\n") .. "" -- a string, even of one number
    reply[n + 5] = table.concat(out[4])
  end
end
return reply
