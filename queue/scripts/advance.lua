-- advance.lua pushes the next slots of schedules into the due sets, if the caller still leads. It skips a schedule that
-- has changed since the caller read it. Because the last run is compared and moved in this one step, a slot is pushed at
-- most once.
--
-- KEYS[1] instances zset    KEYS[2] members hash    KEYS[3] leader hash
-- KEYS[4] last      hash    schedule -> "rev slot runs anchor paused"
-- KEYS[5] tasks     hash    KEYS[6] lanes hash  KEYS[7] meta hash  KEYS[8] watch zset
-- KEYS[9] history   stream  what became of the slots
-- KEYS[10] behind   hash    schedule -> missed slots that are still to be pushed
-- KEYS[11] ..       due sets, and the last: events stream
--
-- ARGV[1] id  [2] generation  [3] epoch  [4] wake channel  [5] cap of history, and of events  [6] n lanes, then their names
-- then n schedules, then for each:
--   name, last run as it was read, last run as it becomes, note for the history or "",
--   the slots it was behind with as they were read, the slots it is behind with afterwards ("" for none; if both are
--   equal, the script does not look at them)
--   probe: "bound task due", the slot that was due bound slots ago, or "". While it waits, no slot is pushed; see crowded
--   n to drop, then for each: lane, task, due, "1" if it stays but is behind from now on. A slot missed in an outage
--   leaves, unless it was claimed or waits for another attempt: then it has another due time. The runs of the last run
--   count one less for each that leaves.
--   n to push, then for each: lane, task, due ("+ms" from now, or unix ms), record
--
-- Returns {now, n schedules with slots that were dropped or not pushed, then for each: its index from 0, how many; then the
-- indexes of the schedules that had changed: the script did nothing for them}.
-- Errors: NOTLEADER, FENCED. O(n * log(due)).
local instances, members, leader, last, tasks, lanes = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local meta, watch, history, behind, channel = KEYS[7], KEYS[8], KEYS[9], KEYS[10], ARGV[4]
local id, gen, epoch = ARGV[1], ARGV[2], ARGV[3]

if not live(instances, members, id, gen) then
  return redis.error_reply("FENCED instance " .. id)
end
local lead = redis.call("HMGET", leader, "id", "gen", "epoch", "sign")
if lead[1] ~= id or lead[2] ~= gen or lead[3] ~= epoch then
  return redis.error_reply("NOTLEADER epoch " .. (lead[3] or "0"))
end

local n_lanes = tonumber(ARGV[6])
local at = 7 + n_lanes
local function arg()
  at = at + 1
  return ARGV[at - 1]
end

local n = tonumber(arg())
local names, plans = {}, {}
for i = 1, n do
  local plan = { name = arg(), expect = arg(), becomes = arg(), note = arg(), behind = arg(), remains = arg() }
  plan.probe = arg()
  plan.drop = at + 1
  at = at + 1 + 4 * tonumber(ARGV[at])
  plan.push = at + 1
  at = at + 1 + 4 * tonumber(ARGV[at])
  names[i], plans[i] = plan.name, plan
end
local current = {}
for from = 1, n, chunk do
  for i, value in ipairs(redis.call("HMGET", last, unpack(names, from, math.min(from + chunk - 1, n)))) do
    current[from + i - 1] = value
  end
end

-- elsewhere reports whether the slots that a schedule is behind with changed since the caller read them. Few steps need
-- them, so they are read one by one.
local function elsewhere(plan)
  return plan.behind ~= plan.remains and (redis.call("HGET", behind, plan.name) or "") ~= plan.behind
end

-- taken reports whether a task of another origin has the ID of a slot: its record does not name this schedule. Enqueue
-- refuses such IDs, but an older release does not, and another program may write them.
local pushed = {}
for _, plan in ipairs(plans) do
  for t = 1, tonumber(ARGV[plan.push - 1]) do
    pushed[#pushed + 1] = ARGV[plan.push + 4 * t - 3]
  end
end
local stands = {} -- the records that exist under those IDs
for from = 1, #pushed, chunk do
  for i, body in ipairs(redis.call("HMGET", tasks, unpack(pushed, from, math.min(from + chunk - 1, #pushed)))) do
    stands[pushed[from + i - 1]] = body
  end
end
local function taken(name, task)
  local length = #name < 128 and string.char(#name) or string.char(#name % 128 + 128, math.floor(#name / 128))
  return stands[task] and not string.find(stands[task], "\15" .. length .. name, 1, true)
end

local owing, settled = {}, {} -- schedules that are behind afterwards, and their slots; schedules that are not any more
local moved, becomes, records, sets, used, notes = {}, {}, {}, {}, {}, {}
local dropped, earliest = {}, nil
local leaving = {} -- the tasks to remove, by due set
local gone = {} -- all of them

local function push(lane, task, due, body)
  if string.byte(due) == 43 then
    due = int(now + tonumber(string.sub(due, 2)))
  end
  earliest = math.min(earliest or tonumber(due), tonumber(due))
  local set = sets[lane]
  if not set then
    set = {}
    sets[lane] = set
    used[#used + 1] = ARGV[6 + lane]
  end
  set[#set + 1], set[#set + 2] = due, task
  records[#records + 1], records[#records + 2] = task, body
end

-- waits reports whether the slot of a probe is overdue and still in its due set, at the due time with which it was pushed.
local function waits(set, probe)
  local _, task, due = string.match(probe, "^(%d+) (.*) (%d+)$")
  return task and tonumber(due) <= now and tonumber(redis.call("ZSCORE", set, task)) == tonumber(due)
end

-- crowded reports whether so many slots of a schedule wait for an instance that handles them that no more are pushed for
-- now. Otherwise a schedule with a short interval would fill Redis. crowded keeps the slot that it found waiting in meta:
-- nothing is pushed meanwhile, so the next probe names a slot that was never pushed.
local full, unfull = {}, {}
local function crowded(plan)
  if plan.probe == "" then
    return false
  end
  local set = KEYS[10 + tonumber(ARGV[plan.push])]
  if redis.call("ZCARD", set) < tonumber(string.match(plan.probe, "^%d+")) then
    return false
  end
  local field = "backlog:" .. plan.name
  local found = redis.call("HGET", meta, field)
  if found and waits(set, found) then
    return true
  end
  if waits(set, plan.probe) then
    full[#full + 1], full[#full + 2] = field, plan.probe
    return true
  end
  if found then
    unfull[#unfull + 1] = field
  end
  return false
end

for i, plan in ipairs(plans) do
  if current[i] ~= plan.expect or elsewhere(plan) then
    moved[#moved + 1] = i - 1
  else
    if plan.note ~= "" then
      notes[#notes + 1] = plan.note
    end
    local left = 0 -- how many did not run. Dropping goes first: it takes no memory, so Redis must not refuse it when full
    for d = 1, tonumber(ARGV[plan.drop - 1]) do
      local p = plan.drop + 4 * d - 4
      local set = KEYS[10 + tonumber(ARGV[p])]
      local due = redis.call("ZSCORE", set, ARGV[p + 1])
      local missed = due and tonumber(due) == tonumber(ARGV[p + 2])
      local body = missed and ARGV[p + 3] == "1" and redis.call("HGET", tasks, ARGV[p + 1])
      if body then
        redis.call("ZREM", set, nobody) -- a first write that takes no memory: the record gets no longer, so it must pass too
        undo("HSET", tasks, ARGV[p + 1], body)
        records[#records + 1], records[#records + 2] = ARGV[p + 1], string.gsub(body, "^(1k%d+,)%a", "%1b")
      elseif missed then
        redis.call("ZREM", set, nobody)
        leaving[set] = leaving[set] or {}
        table.insert(leaving[set], ARGV[p + 1])
        gone[#gone + 1] = ARGV[p + 1]
        notes[#notes + 1] = ARGV[p + 1] .. " missed outage"
        left = left + 1
      end
    end
    local n_push = tonumber(ARGV[plan.push - 1])
    if n_push > 0 and crowded(plan) then
      local first, last_slot = ARGV[plan.push + 1], string.match(ARGV[plan.push + 4 * n_push - 3], "%d+$")
      notes[#notes + 1] = first .. ".." .. last_slot .. " skipped " .. n_push .. " backlog"
      left, n_push = left + n_push, 0
    end
    if left > 0 then -- they did not run: only here it is known how many
      local how_far, runs, rest = string.match(plan.becomes, "^(%d+ %d+) (%d+) (.*)$")
      plan.becomes = how_far .. " " .. int(math.max(runs - left, 0)) .. " " .. rest
      dropped[#dropped + 1], dropped[#dropped + 2] = i - 1, left
    end
    if plan.becomes ~= plan.expect then
      becomes[#becomes + 1], becomes[#becomes + 2] = plan.name, plan.becomes
    end
    if plan.behind ~= plan.remains and plan.remains ~= "" then
      owing[#owing + 1], owing[#owing + 2] = plan.name, plan.remains
    elseif plan.behind ~= plan.remains then
      settled[#settled + 1] = plan.name
    end
    for t = 1, n_push do
      local p = plan.push + 4 * t - 4
      if taken(plan.name, ARGV[p + 1]) then
        notes[#notes + 1] = ARGV[p + 1] .. " skipped taken"
      else
        push(tonumber(ARGV[p]), ARGV[p + 1], ARGV[p + 2], ARGV[p + 3])
      end
    end
  end
end

-- back adds an undo that restores the fields of a hash. List has the fields and values to be written, had the old values.
local function back(hash, list, had)
  undos[#undos + 1] = function()
    for i = 1, #list, 2 do
      if had[list[i]] then
        redis.pcall("HSET", hash, list[i], had[list[i]])
      else
        redis.pcall("HDEL", hash, list[i])
      end
    end
  end
end

local lasts, debts = {}, {}
for i, plan in ipairs(plans) do
  lasts[plan.name] = current[i]
  debts[plan.name] = plan.behind ~= "" and plan.behind or nil
end
if #becomes + #owing + #settled + #records > 0 then
  redis.call("ZADD", watch, "XX", 0, nobody)
  redis.call("HDEL", tasks, nobody)
  back(leader, { "sign" }, { sign = lead[4] })
  redis.call("HSET", leader, "sign", int(now)) -- a sign of life, see look.lua
end
back(last, becomes, lasts)
many("HSET", last, becomes)
back(behind, owing, debts)
many("HSET", behind, owing)
many("HSET", tasks, records)
undos[#undos + 1] = function()
  for _, set in pairs(sets) do
    for i = 2, #set, 2 do
      if stands[set[i]] then
        redis.pcall("HSET", tasks, set[i], stands[set[i]])
      else
        redis.pcall("HDEL", tasks, set[i])
      end
    end
  end
end
for lane, set in pairs(sets) do
  undo_added(KEYS[10 + lane], set)
  many("ZADD", KEYS[10 + lane], set)
end
if #used > 0 then
  lanes_known(lanes, meta, channel, used)
  wake(watch, channel, earliest)
end
for i = 1, #full, 2 do
  undo("HDEL", meta, full[i])
  record(KEYS[#KEYS], ARGV[5], "event", "backlog", "schedule", string.sub(full[i], 9))
end
many("HSET", meta, full)
if #notes > 0 then
  record(history, ARGV[5], "slots", table.concat(notes, "\n"), "gen", gen)
end
for set, list in pairs(leaving) do
  remove_last("ZREM", set, list)
end
remove_last("HDEL", tasks, gone)
remove_last("HDEL", behind, settled)
remove_last("HDEL", meta, unfull)
local reply = { now, #dropped / 2 }
for _, list in ipairs({ dropped, moved }) do
  for _, value in ipairs(list) do
    reply[#reply + 1] = value
  end
end
return reply
