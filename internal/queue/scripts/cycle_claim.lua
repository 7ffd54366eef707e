-- cycle_claim.lua is the last part of cycle.lua, which names the keys and arguments. It settles, claims and replies.
--
-- The functions come first; the steps begin at "local settled":
--   1. settle the runs that ended, and put tasks that waited for their keys back into their lanes
--   2. if the leader's rule lets the caller claim, claim group by group, in the order of the request
--   3. put more tasks back where the claim left room, and claim again
--   4. decide which instance looks when the next task falls due
--   5. write the history, the counters and the claims, and reply

local skipped = 0
local fence = num(counters.fence) or 0
local entries = {} -- the claims, as fields and values of the running hash
local gave = {} -- the tasks of the reply, lane by lane

-- begins notes the due time of a lane's first task: as text, as Redis prints it, and as a number.
local function begins(lane, text)
  lane.text, lane.first = text, tonumber(text)
end

-- head returns the due time of a lane's first task, or false if the lane is empty. It reads Redis once: lane.first is nil
-- until then, and again after each change of the lane that may move its head.
local function head(lane)
  if lane.first == nil then
    lane.first = false
    local first = redis.call("ZRANGE", lane.key, 0, 0, "WITHSCORES")
    if first[2] then
      begins(lane, first[2])
    end
  end
  return lane.first
end

-- claimer returns share, the function that claims from one group. The functions in it are made only if there is a task to
-- claim, because to make them costs time: see cycle_settle.lua.
local function claimer()
  -- The most tasks that this call looks at. A task whose key is taken costs a look without being claimed, so a call could
  -- otherwise go through a lane without end.
  local looks = 2 * (want + own_left) + 100
  local prefix -- "fence claimed ", made with the first claim: all claims of a call share one fence
  local function claim_prefix()
    if not prefix then
      -- At least the clock in microseconds, so that fences rise even after Redis has lost its last writes.
      fence = math.max(fence + 1, clock[1] * 1000000 + clock[2])
      rises[#rises + 1], rises[#rises + 2] = "fence", int(fence)
      prefix = int(fence) .. " " .. int(now) .. " "
    end
    return prefix
  end

  -- admits reports whether a task with a key may run now. If the key has no room, its overlap decides: the task is
  -- dropped, or waits for its key. A task that is behind never stands in the way of one on time, so the policies s, q and
  -- r count it neither as running nor as waiting.
  --
  --   s  drop the task if tasks on time fill the key, running or waiting
  --   q  drop the task if a task on time waits already; else it waits
  --   r  drop the tasks on time that wait, ask the ones on time that run to stop, and wait
  --   b  the task is behind: wait after all tasks on time
  --   any other: wait
  local function admits(lane, task, due, key, limit, overlap)
    local runs = num(redis.call("HGET", active, "k:" .. key)) or 0
    if runs < limit then
      return true
    end
    local drop, low, high = {}, on_time_range(key) -- the ids to drop; where the tasks on time wait in held
    local function on_time()
      return runs - (num(redis.call("HGET", active, "b:" .. key)) or 0)
    end
    local function waiting()
      return redis.call("ZLEXCOUNT", held, low, high)
    end
    if overlap == "s" and (on_time() >= limit or on_time() + waiting() >= limit) or overlap == "q" and waiting() > 0 then
      drop[1] = task
    else
      if overlap == "r" then
        for _, waits in ipairs(redis.call("ZRANGEBYLEX", held, low, high, "LIMIT", 0, chunk)) do
          redis.call("ZREM", held, waits)
          undo("ZADD", held, 0, waits)
          drop[#drop + 1] = string.match(waits, "([^\31]*)$") -- the id: the last part of the member
        end
        -- One request for the key cancels all its runs up to this fence; lib_cancel.lua spares those that are behind.
        if on_time() > 0 then
          local had = redis.call("HGET", cancel, "k:" .. key)
          redis.call("HSET", cancel, "k:" .. key, int(fence) .. " " .. int(now) .. " replaced")
          undo(had and "HSET" or "HDEL", cancel, "k:" .. key, had or nobody)
          tell(channel, "cancel")
        end
      end
      hold(held, key, due, lane.key, task, overlap == "b")
    end
    remove_last("HDEL", tasks, drop)
    for _, gone in ipairs(drop) do
      notes[#notes + 1] = gone .. " skipped overlap"
      more[#notes] = ""
    end
    skipped = skipped + #drop
    return false
  end

  -- first_due reads the first due tasks of a lane: up to n, and as many as fit into part bytes. The first task of a call
  -- always fits, whatever its size. It returns how many it read, their ids and records, and their due times as a list, or
  -- as one text if all have the same, and whether they are not the first of the lane (see cycle_crowd.lua). Records are read
  -- a few at a time: if they are large, few fit, and the rest would be read in vain.
  local fair, alone -- whether schedules may take only half of the workers; whether no other lane of the group has a due task
  local most_room = 4 * 1024 * 1024 -- bytes of records in one reply
  local room = most_room -- bytes still free
  local function first_due(lane, n, part)
    local ids, dues, found, more, loose = nil, nil, n, true, false -- more: whether others are due behind these
    -- The task behind the first n says when the next one is due. If that is when the first is due, it is so of all
    -- between them: to print so many scores would cost as much as to find the tasks.
    local next_due = n >= few and redis.call("ZRANGE", lane.key, n, n, "WITHSCORES")[2]
    if next_due and next_due == lane.text then
      ids, dues = redis.call("ZRANGE", lane.key, 0, n - 1), next_due
    else
      local rows = redis.call("ZRANGE", lane.key, "-inf", int(now), "BYSCORE", "LIMIT", 0, n + 1, "WITHSCORES")
      found = math.min(#rows / 2, n)
      lane.first = nil -- head reads it when asked, if no row says it
      more = rows[2 * n + 2]
      if more then
        begins(lane, more)
      end
      ids, dues = {}, {}
      for i = 1, found do
        ids[i], dues[i] = rows[2 * i - 1], rows[2 * i]
      end
    end
    -- Slots of one schedule have different due times.
    if fair and not lane.own and (more or not alone) and (largest > 0 or type(dues) == "table" and alike(ids, found))
      and string.find(table.concat(ids, "", 1, found), "@", 1, true) then
      found, ids, dues, loose = pass_over(lane, n, alone, found, ids, dues)
    end
    if found == 0 then
      return 0
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
        lane.spent, lane.first = true, nil -- no bytes left: the next call claims the rest
        return i - 1, ids, records, dues, loose
      end
      room, part = room - size, part - size
    end
    return found, ids, records, dues, loose
  end

  -- limits returns the limits that a task with a key counts in, as the tail of its value in the running hash: "\31k:key" and
  -- "\31b:key" before what it is given, the limit of the type. It returns nil if the task may not run now. It counts the
  -- task in its key; take counts all tasks of the type at once.
  local function limits(lane, id, due, body, tail)
    local limit, overlap, length, stop = string.match(body, "^[12]k(%d+),(%a)(%d+):()")
    if not limit then -- a damaged record: the consumer settles the task as dead
      return tail
    end
    local key = string.sub(body, stop, stop + length - 1)
    if not admits(lane, id, due, key, tonumber(limit), overlap) then
      return nil
    end
    adjust(active, "k:" .. key, 1)
    if overlap == "b" then
      adjust(active, "b:" .. key, 1)
      tail = "\31b:" .. key .. tail
    end
    return "\31k:" .. key .. tail
  end

  -- set_aside makes a task dead whose ID is empty or has a line break. onbeat accepts no such ID, so another program wrote
  -- it, and the history, which is written in lines, could not name it.
  local function set_aside(lane, id)
    redis.call("ZADD", dead, now, id)
    undo("ZREM", dead, id)
    record(events, ARGV[5], "event", "set aside", "task", id, "lane", lane.name)
  end

  -- The reply says once what is the same for many tasks in a row: a value and how many have it, as "20*1000", "20" if it
  -- is one. series adds such a part to a list.
  local function series(list, value, n)
    list[#list + 1] = n > 1 and value .. "*" .. n or value
  end

  local text = {} -- numbers as text: many records have the same length, and int is slow
  local function size(n)
    text[n] = text[n] or int(n)
    return text[n]
  end

  -- take looks at up to n due tasks of a lane, whose records may take part bytes, and returns how many it claimed. The
  -- others are dropped or wait for their key.
  local function take(lane, n, part)
    if lane.limit > 0 then
      lane.slot = "t:" .. string.match(lane.name, "[^|]*$")
      n = math.min(n, lane.limit - (num(redis.call("HGET", active, lane.slot)) or 0))
      if n <= 0 then
        lane.full = true
        return 0
      end
    end
    local found, ids, records, dues, loose = first_due(lane, n, part)
    if found == 0 then
      return 0
    end
    looks = math.max(looks - found, 0)
    local all = table.concat(ids, "", 1, found)
    local breaks = string.find(all, "\n", 1, true) -- whether any id has a line break
    local same = type(dues) == "string" and dues
    local removed = ids -- the ids that the undo brings back: the list ids, until some of them are not claimed
    if loose then
      redis.call("ZREM", lane.key, unpack(ids, 1, found))
    else
      redis.call("ZREMRANGEBYRANK", lane.key, 0, found - 1)
    end
    undos[#undos + 1] = function()
      for i = 1, found do
        redis.pcall("ZADD", lane.key, same or dues[i], removed[i])
      end
    end
    local count, at, byte, plain = 0, #entries, string.byte, lane.slot and "\31" .. lane.slot or ""
    -- Most tasks of a claim have the same value, and ids and records of the same length: these are made once, and added to
    -- the reply when another comes.
    local value, last_due, last_tail, last_id, last_body
    local id_sizes, due_times, sizes, n_ids, n_dues, n_bodies = {}, {}, {}, 0, 0, 0
    for i = 1, found do
      local body, id, due = records[i], ids[i], same or dues[i]
      if body and (id == "" or breaks and string.find(id, "\n", 1, true)) then
        set_aside(lane, id)
        body = false
      end
      local tail = body and plain
      if body and byte(body, 2) == 107 then -- "k": only a record with a key has it there (see task.Encode)
        tail = limits(lane, id, due, body, plain)
      end
      if tail then
        if due ~= last_due or tail ~= last_tail then
          value, last_tail = claim_prefix() .. due .. tail, tail
        end
        if due ~= last_due then
          if last_due then
            series(due_times, last_due, n_dues)
          end
          last_due, n_dues = due, 0
        end
        if #id ~= last_id then
          if last_id then
            series(id_sizes, size(last_id), n_ids)
          end
          last_id, n_ids = #id, 0
        end
        if #body ~= last_body then
          if last_body then
            series(sizes, size(last_body), n_bodies)
          end
          last_body, n_bodies = #body, 0
        end
        count, n_ids, n_dues, n_bodies = count + 1, n_ids + 1, n_dues + 1, n_bodies + 1
        -- Move the claimed tasks to the front of the lists, which the reply joins from 1 to count.
        ids[count], records[count] = id, body
        entries[at + 1], entries[at + 2] = id, value
        at = at + 2
      elseif removed == ids then
        removed = { unpack(ids, 1, found) }
      end
    end
    if count > 0 then
      if lane.limit > 0 then
        adjust(active, lane.slot, count)
      end
      series(id_sizes, size(last_id), n_ids)
      series(due_times, last_due, n_dues)
      series(sizes, size(last_body), n_bodies)
      local g = #gave
      gave[g + 1], gave[g + 2], gave[g + 3] = lane.number, count, table.concat(id_sizes, ",")
      gave[g + 4] = count == found and all or table.concat(ids, "", 1, count)
      gave[g + 5], gave[g + 6] = table.concat(due_times, ","), table.concat(sizes, ",")
      gave[g + 7] = table.concat(records, "", 1, count)
    end
    return count
  end

  -- share claims up to n tasks from the lanes of one group (one queue and priority, several types), and returns how many
  -- it claimed. In each round it asks the lane with the longest waiting task first, and each lane gets an equal part of
  -- the number and of the bytes that are left. So a flood of one type does not hold up another. Rounds go on while a lane
  -- has due tasks, because lanes with few tasks leave room for the others. Then schedules that have half of the workers get
  -- what is left: no worker stays free while a task is due.
  local function share(group, n)
    local left = n
    fair = scarce
    while left > 0 and looks > 0 and room > 0 do
      local ready, passed = {}, false
      for _, lane in ipairs(group) do
        local first = not lane.full and not lane.spent and head(lane)
        if first and first <= now then
          if fair and lane.passed then
            passed = true
          else
            ready[#ready + 1] = lane
          end
        end
      end
      if #ready == 0 and not passed then
        break
      end
      alone = #ready == 1 and not passed
      fair = fair and #ready > 0 -- else no others are left
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
      lane.passed = nil
      if lane.spent then
        looks = 0 -- the tasks that did not fit go before all later groups: claim nothing more in this call
      end
    end
    return n - left
  end

  return share
end

-- watching counts the watchers that read the same lanes as the caller and will have looked by the given moment. A watcher
-- that is late does not count: it may have died.
local function watching(due)
  local n = 0
  for _, member in ipairs(redis.call("ZRANGEBYSCORE", watch, int(now - overdue), int(due))) do
    local _, theirs = watcher(member)
    n = n + (theirs == reads and 1 or 0)
  end
  return n
end

-- Step 1: settle.
local settled, keys = tonumber(arg()), {} -- the keys that may have room now
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
-- The flags of the reply: 1 may claim, 2 the caller watches, 4 due work is left. Left is how many tasks are still wanted.
local flags, next_due, left, share = permitted and 1 or 0, -1, want, nil
local over -- the first due time of a task of the dispatcher's own that is left because this call took as many as it may
if permitted and want + own_left > 0 and known ~= "0" and known ~= (counters.lanes or "0") then
  -- The caller does not know a new lane, which may hold more urgent tasks. So it claims nothing, reads the list of lanes,
  -- and calls again. If it does not get that far, a heartbeat finds that it has overslept, by this entry.
  flags = 1 + 4
  redis.call("ZADD", watch, now, me)
end

-- budget returns how many tasks the call may still claim from a group, and spend takes n off that. The dispatcher's own tasks
-- have workers of their own: no other task takes these, and none of them takes the workers of others.
local function budget(group)
  return group == "-1" and own_left or group == "-2" and math.min(own_left, bulk_left) or left
end
local function spend(group, n)
  if group == "-1" or group == "-2" then
    own_left = own_left - n
    bulk_left = bulk_left - (group == "-2" and n or 0)
  else
    left = left - n
  end
end

-- claim claims from the lanes, group by group, and sets next_due to the first due time that is left in them. It does not look
-- into lanes of the dispatcher's own for which there is no worker: when one is free again, that call looks.
local function claim()
  local i = 1
  next_due = -1
  while i <= #lanes do
    local group = {}
    local name, theirs = lanes[i].group, lanes[i].own
    local most = budget(name)
    while i <= #lanes and lanes[i].group == name do
      if lanes[i].limit >= 0 and (most > 0 or not theirs) then
        group[#group + 1] = lanes[i]
      end
      i = i + 1
    end
    local ready = false -- whether a lane of the group has a due task
    for _, lane in ipairs(group) do
      local first = most > 0 and head(lane)
      ready = ready or first and first <= now
    end
    if ready then
      share = share or claimer()
      spend(name, share(group, most))
    end
    for _, lane in ipairs(group) do
      local first = not lane.full and head(lane)
      if first and theirs and budget(name) == 0 then
        over = math.min(over or first, first)
      elseif first and (next_due < 0 or first < next_due) then
        next_due = first
      end
    end
  end
end

-- Steps 2 and 3: claim; then release once more, now beyond the first in line, and claim what that brought.
if flags == 1 then
  claim()
end
if #keys > 0 and release(keys, true) and flags == 1 then
  claim()
end
-- Step 4: every due time needs an instance that will look at it.
if flags == 1 then
  if over then -- an instance that has a worker left for that task takes it
    wake(watch, channel, over, nil, nil, true)
  end
  if next_due >= 0 and next_due <= now then -- due work is left: another instance may have free workers
    flags = flags + 4
    wake(watch, channel, now, reads)
  elseif left > 0 then
    -- Two instances watch the next due time. The others wait until a script wakes them, or until a heartbeat finds that
    -- the watchers have overslept.
    local due = next_due < 0 and never or next_due
    if next_due < 0 or watching(due) < 2 then
      flags = flags + 2
    else
      due = never
    end
    redis.call("ZADD", watch, due, me)
  elseif next_due >= 0 then -- the caller has no free worker for the next task: another instance looks in its place
    wake(watch, channel, next_due, reads)
  end
end

-- Settling let tasks start: wake a watcher of each kind. The caller's own kind needs none if the caller looks itself.
if stirred then
  wake(watch, channel, stirred, nil, flags > 0 and want > 0 and not away and reads or nil, own_stirred)
end

-- Step 5: write and reply.
if #notes > 0 then
  record(history, ARGV[5], "runs", table.concat(notes, "\n"), "gen", gen, "instance", id, "release", ARGV[12],
    "more", table.concat(more, "\n"), unpack(given("facts", table.concat(facts, "\n"))))
end
if runs and #others[1] > 0 then
  record(runs, ARGV[5], "tasks", table.concat(others[1], "\n"), "gen", gen, "instance", id, "release", ARGV[12],
    "more", table.concat(others[2], "\n"), "facts", table.concat(others[3], "\n"))
  redis.pcall("PEXPIRE", runs, 2592000000) -- a month: nothing else removes what no archive reads any more
end
if #rises > 0 then
  redis.call("HSET", meta, unpack(rises))
end
many("HSET", running, entries) -- last: no write after it could be refused, so a claim is never half there

local reply = {
  clock[1] * 1000000 + clock[2], next_due, flags, num(counters.lanes) or 0, fence, table.concat(void, ","), skipped,
  table.concat(refused, ","), table.concat(owed, "\31"),
}
for _, value in ipairs(gave) do
  reply[#reply + 1] = value
end
return reply
