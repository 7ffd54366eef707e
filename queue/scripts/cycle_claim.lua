-- cycle_claim.lua is the last part of cycle.lua, which names keys and arguments: it settles, claims, and replies.

local skipped = 0
local fence = num(counters.fence) or 0
local entries = {} -- what the running hash is to hold
local gave = {} -- the reply, lane by lane

-- head is the due time of a lane's first task, or false.
local function head(lane)
  if lane.first == nil then
    local first = redis.call("ZRANGE", lane.key, 0, 0, "WITHSCORES")
    lane.first = first[2] and tonumber(first[2]) or false
  end
  return lane.first
end

-- claimer returns the function that claims. It is made when there is something to claim: see cycle_settle.lua.
local function claimer()
  local looks = 2 * want + 100 -- tasks whose key is taken cost a look, and are no claim
  local prefix -- "fence claimed ", made when the first task is claimed: one fence a call
  local function claim_prefix()
    if not prefix then
      fence = math.max(fence + 1, clock[1] * 1000000 + clock[2])
      rises[#rises + 1], rises[#rises + 2] = "fence", int(fence)
      prefix = int(fence) .. " " .. int(now) .. " "
    end
    return prefix
  end

  -- conflict settles what happens to a task whose key is taken. It returns true if the task may run after all. No task
  -- that is behind (policy b) is in the way of one on time: it counts neither as running nor as waiting.
  local function conflict(lane, task, due, key, limit, policy)
    local runs = num(redis.call("HGET", active, "k:" .. key)) or 0
    if runs < limit then
      return true
    end
    local drop, low, high = {}, on_time_range(key)
    local function on_time()
      return runs - (num(redis.call("HGET", active, "b:" .. key)) or 0)
    end
    local function waiting()
      return redis.call("ZLEXCOUNT", held, low, high)
    end
    if policy == "s" and (on_time() >= limit or on_time() + waiting() >= limit) or policy == "q" and waiting() > 0 then
      drop[1] = task
    else
      if policy == "r" then
        for _, waits in ipairs(redis.call("ZRANGEBYLEX", held, low, high, "LIMIT", 0, chunk)) do
          redis.call("ZREM", held, waits)
          undo("ZADD", held, 0, waits)
          drop[#drop + 1] = string.match(waits, "([^\31]*)$")
        end
        if on_time() > 0 then
          local had = redis.call("HGET", cancel, "k:" .. key)
          redis.call("HSET", cancel, "k:" .. key, int(fence) .. " " .. int(now) .. " replaced")
          undo(had and "HSET" or "HDEL", cancel, "k:" .. key, had or nobody)
          tell(channel, "cancel")
        end
      end
      hold(held, key, due, lane.key, task, policy == "b")
    end
    remove_last("HDEL", tasks, drop)
    for _, gone in ipairs(drop) do
      notes[#notes + 1] = gone .. " skipped overlap"
      more[#notes] = ""
    end
    skipped = skipped + #drop
    return false
  end

  -- first_due reads the ids, due times and records of the first tasks of a lane that are due: up to n, and as many as
  -- fit into its part of the reply, but at least the first of a call, whatever its size. Records are read a few at a time:
  -- of large ones few fit, and the others would be read in vain.
  local most_room = 4 * 1024 * 1024
  local room = most_room
  local function first_due(lane, n, part)
    -- One more than asked for, which says what is due next.
    local rows = redis.call("ZRANGE", lane.key, "-inf", int(now), "BYSCORE", "LIMIT", 0, n + 1, "WITHSCORES")
    local found = math.min(#rows / 2, n)
    lane.first = rows[2 * n + 2] and tonumber(rows[2 * n + 2]) -- else to be read when asked for
    if found == 0 then
      return 0
    end
    local ids, dues = {}, {}
    for i = 1, found do
      ids[i], dues[i] = rows[2 * i - 1], rows[2 * i]
    end
    local have = math.min(room == most_room and 32 or 8, found)
    local records = redis.call("HMGET", tasks, unpack(ids, 1, have))
    for i = 1, found do
      if i > have then
        local more = redis.call("HMGET", tasks, unpack(ids, i, math.min(8 * have, found)))
        for k = 1, #more do
          records[have + k] = more[k]
        end
        have = have + #more
      end
      local size = records[i] and #records[i] or 0
      if size > part and room < most_room then
        lane.spent, lane.first = true, tonumber(dues[i]) -- the rest is left behind, and taken by the next call
        return i - 1, ids, dues, records, rows
      end
      room, part = room - size, part - size
    end
    return found, ids, dues, records, rows
  end

  -- limits is what a task takes of its limits, as its value in the running hash has it, or nil if it may not run.
  local function limits(lane, id, due, body)
    local tail = lane.slot and "\31" .. lane.slot or ""
    if string.byte(body, 2) ~= 107 then
      return tail
    end
    local limit, policy, length, stop = string.match(body, "^1k(%d+),(%a)(%d+):()")
    if not limit then
      return tail
    end
    local key = string.sub(body, stop, stop + length - 1)
    if not conflict(lane, id, due, key, tonumber(limit), policy) then
      return nil
    end
    adjust(active, "k:" .. key, 1)
    if policy == "b" then
      adjust(active, "b:" .. key, 1)
      tail = "\31b:" .. key .. tail
    end
    return "\31k:" .. key .. tail
  end

  -- set_aside lets those be dead whose IDs nobody could have chosen: the reply could not name them.
  local function set_aside(lane, n, ids, records)
    for i = 1, n do
      if ids[i] == "" or string.find(ids[i], "\n", 1, true) then
        if records[i] then
          redis.call("ZADD", dead, now, ids[i])
          undo("ZREM", dead, ids[i])
          record(events, ARGV[5], "event", "set aside", "task", ids[i], "lane", lane.name)
        end
        records[i] = false
      end
    end
  end

  local text = {} -- of numbers, which are expensive to write

  -- take looks at up to n due tasks of a lane, and returns how many of them it claimed.
  local function take(lane, n, part)
    if lane.limit > 0 then
      lane.slot = "t:" .. string.match(lane.name, "[^|]*$")
      n = math.min(n, lane.limit - (num(redis.call("HGET", active, lane.slot)) or 0))
      if n <= 0 then
        lane.full = true
        return 0
      end
    end
    local found, ids, dues, records, rows = first_due(lane, n, part)
    if found == 0 then
      return 0
    end
    local list = "\n" .. table.concat(ids, "\n", 1, found) .. "\n"
    if string.find(list, "\n\n", 1, true) or select(2, string.gsub(list, "\n", "\n")) ~= found + 1 then
      set_aside(lane, found, ids, records)
    end
    looks = math.max(looks - found, 0)
    redis.call("ZREMRANGEBYRANK", lane.key, 0, found - 1)
    undo_removed(lane.key, rows, found)
    local count, at, lengths = 0, #entries, {}
    local last_due, last_tail, value -- most values of a claim are the same
    for i = 1, found do
      local body, id, due = records[i], ids[i], dues[i]
      local tail = body and limits(lane, id, due, body)
      if tail then
        if due ~= last_due or tail ~= last_tail then
          value, last_due, last_tail = claim_prefix() .. due .. tail, due, tail
        end
        count = count + 1
        ids[count], dues[count], records[count] = id, due, body
        local length = #body
        text[length] = text[length] or int(length)
        lengths[count] = text[length]
        entries[at + 1], entries[at + 2] = id, value
        at = at + 2
      end
    end
    if count > 0 then
      if lane.limit > 0 then
        adjust(active, lane.slot, count)
      end
      gave[#gave + 1] = lane.number
      gave[#gave + 1] = table.concat(ids, "\n", 1, count)
      gave[#gave + 1] = table.concat(dues, "\n", 1, count)
      gave[#gave + 1] = table.concat(lengths, "\n", 1, count)
      gave[#gave + 1] = table.concat(records, "", 1, count)
    end
    return count
  end

  -- share claims from the lanes of one group (one queue and priority, several types): the longest waiting first, and an
  -- even share for each, in number and in bytes, so that a flood of one type holds up no other.
  local function share(group, n)
    local left = n
    while left > 0 and looks > 0 and room > 0 do
      local ready = {}
      for _, lane in ipairs(group) do
        local first = not lane.full and not lane.spent and head(lane)
        if first and first <= now then
          ready[#ready + 1] = lane
        end
      end
      if #ready == 0 then
        break
      end
      table.sort(ready, function(a, b) return a.first < b.first end)
      local part, bytes = math.ceil(left / #ready), room / #ready
      for _, lane in ipairs(ready) do
        local most = math.min(part, left, looks)
        if most > 0 then
          left = left - take(lane, most, bytes)
        end
      end
    end
    for _, lane in ipairs(group) do
      if lane.spent then
        looks = 0 -- what did not fit goes before all that comes behind this group
      end
    end
    return n - left
  end

  return share
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

local settled, keys = tonumber(arg()), {} -- the keys of which there may be room now
if settled > 0 then
  keys = settle(settled)
end
for key in string.gmatch(ARGV[11], "[^\31]+") do
  keys[#keys + 1] = key
end
if #keys > 0 then
  release(keys, false)
end

local permitted = may(redis.call("HMGET", leader, "id", "gen", "order", "consume", "open", "pause"), id, gen, member)
local flags, next_due, left, share = permitted and 1 or 0, -1, want, nil
if permitted and want > 0 and known ~= "0" and known ~= (counters.lanes or "0") then
  -- A lane that it does not know may hold what is more urgent: it takes nothing before it has read the list, and looks
  -- again then. Should it not come to that, it is found to have overslept.
  flags = 1 + 4
  redis.call("ZADD", watch, now, me)
end

-- claim asks the lanes, group by group, and finds out what is due next.
local function claim()
  local i = 1
  next_due = -1
  while i <= #lanes do
    local group = {}
    local name = lanes[i].group
    while i <= #lanes and lanes[i].group == name do
      if lanes[i].limit >= 0 then
        group[#group + 1] = lanes[i]
      end
      i = i + 1
    end
    local ready = false
    for _, lane in ipairs(group) do
      local first = left > 0 and head(lane)
      ready = ready or first and first <= now
    end
    if ready then
      share = share or claimer()
      left = left - share(group, left)
    end
    for _, lane in ipairs(group) do
      local first = not lane.full and head(lane)
      if first and (next_due < 0 or first < next_due) then
        next_due = first
      end
    end
  end
end

if flags == 1 then
  claim()
end
if #keys > 0 and release(keys, true) and flags == 1 then
  claim()
end
if flags == 1 then
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

if stirred then -- of its own kind somebody looks, if this instance does
  wake(watch, channel, stirred, nil, flags > 0 and want > 0 and not away and reads or nil)
end

if #notes > 0 then
  record(history, ARGV[5], "runs", table.concat(notes, "\n"), "gen", gen, "instance", id, "release", ARGV[12],
    "more", table.concat(more, "\n"))
end
if #rises > 0 then
  redis.call("HSET", meta, unpack(rises))
end
many("HSET", running, entries) -- nothing is refused any more

local reply = {
  clock[1] * 1000000 + clock[2], next_due, flags, num(counters.lanes) or 0, fence, table.concat(void, ","), skipped,
  table.concat(refused, ","), table.concat(owed, "\31"),
}
for _, value in ipairs(gave) do
  reply[#reply + 1] = value
end
return reply
