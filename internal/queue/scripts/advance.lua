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

local at = 7 + tonumber(ARGV[6])
local n = tonumber(ARGV[at])
at = at + 1
-- Where each schedule begins in ARGV, and where its tasks to drop and to push do; how many they are stands before them.
local names, starts, drops, pushes = {}, {}, {}, {}
local pushed = {} -- the ids of all slots to push
for i = 1, n do
  names[i], starts[i], drops[i] = ARGV[at], at, at + 8
  pushes[i] = drops[i] + 4 * tonumber(ARGV[at + 7]) + 1
  at = pushes[i] + 4 * tonumber(ARGV[pushes[i] - 1])
  for p = pushes[i], at - 1, 4 do
    pushed[#pushed + 1] = ARGV[p + 1]
  end
end

-- read returns the values of many fields of a hash, in their order: false for a field that is not there.
local function read(hash, fields)
  local all = {}
  for from = 1, #fields, chunk do
    local values = redis.call("HMGET", hash, unpack(fields, from, math.min(from + chunk - 1, #fields)))
    if #fields <= chunk then
      return values
    end
    for i, value in ipairs(values) do
      all[from + i - 1] = value
    end
  end
  return all
end
local current = read(last, names)
local stands = read(tasks, pushed) -- the records that exist under the ids of slots to push

-- elsewhere reports whether the slots that a schedule is behind with changed since the caller read them. Few steps need
-- them, so they are read one by one.
local function elsewhere(name, owes, remains)
  return owes ~= remains and (redis.call("HGET", behind, name) or "") ~= owes
end

-- taken reports whether a record under a slot's id is of a task of another origin: it does not name this schedule. Enqueue
-- refuses such IDs, but another program may write them.
local function taken(name, body)
  local length = #name < 128 and string.char(#name) or string.char(#name % 128 + 128, math.floor(#name / 128))
  return not string.find(body, "\15" .. length .. name, 1, true)
end

local owing, debts = {}, {} -- schedules that are behind afterwards, and their slots; by schedule, the slots from before
local settled = {} -- schedules that are not behind any more
local moved, becomes, records, sets, used, notes = {}, {}, {}, {}, {}, {}
local dropped, earliest = {}, nil
local leaving = {} -- the tasks to remove, by due set
local gone = {} -- all of them

local last_due, score -- most slots of a call have the same due time as the one before
local function push(lane, task, due, body)
  if due ~= last_due then
    last_due, score = due, due
    if string.byte(due) == 43 then
      score = int(now + tonumber(string.sub(due, 2)))
    end
    earliest = math.min(earliest or tonumber(score), tonumber(score))
  end
  local set = sets[lane]
  if not set then
    set = {}
    sets[lane] = set
    used[#used + 1] = ARGV[6 + tonumber(lane)]
  end
  local s, r = #set, #records
  set[s + 1], set[s + 2] = score, task
  records[r + 1], records[r + 2] = task, body
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
local sizes = {} -- lane -> how many tasks are due in it
local function crowded(name, probe, lane)
  if probe == "" then
    return false
  end
  local set = KEYS[10 + tonumber(lane)]
  sizes[lane] = sizes[lane] or redis.call("ZCARD", set)
  if sizes[lane] < tonumber(string.match(probe, "^%d+")) then
    return false
  end
  local field = "backlog:" .. name
  local found = redis.call("HGET", meta, field)
  if found and waits(set, found) then
    return true
  end
  if waits(set, probe) then
    full[#full + 1], full[#full + 2] = field, probe
    return true
  end
  if found then
    unfull[#unfull + 1] = field
  end
  return false
end

local before = 0 -- how many slots the schedules before have to push
for i = 1, n do
  local name, expect, to, note, owes, remains, probe = unpack(ARGV, starts[i], starts[i] + 6)
  local n_push = tonumber(ARGV[pushes[i] - 1])
  if current[i] ~= expect or elsewhere(name, owes, remains) then
    moved[#moved + 1] = i - 1
  else
    if note ~= "" then
      notes[#notes + 1] = note
    end
    local left = 0 -- how many did not run. Dropping goes first: it takes no memory, so Redis must not refuse it when full
    for p = drops[i], pushes[i] - 2, 4 do
      local set = KEYS[10 + tonumber(ARGV[p])]
      local due = redis.call("ZSCORE", set, ARGV[p + 1])
      local missed = due and tonumber(due) == tonumber(ARGV[p + 2])
      local body = missed and ARGV[p + 3] == "1" and redis.call("HGET", tasks, ARGV[p + 1])
      if body then
        redis.call("ZREM", set, nobody) -- a first write that takes no memory: the record gets no longer, so it must pass too
        undo("HSET", tasks, ARGV[p + 1], body)
        records[#records + 1], records[#records + 2] = ARGV[p + 1], string.gsub(body, "^([12]k%d+,)%a", "%1b")
      elseif missed then
        redis.call("ZREM", set, nobody)
        leaving[set] = leaving[set] or {}
        table.insert(leaving[set], ARGV[p + 1])
        gone[#gone + 1] = ARGV[p + 1]
        notes[#notes + 1] = ARGV[p + 1] .. " missed outage"
        left = left + 1
      end
    end
    local last_push = pushes[i] + 4 * n_push - 4
    if n_push > 0 and crowded(name, probe, ARGV[pushes[i]]) then
      local first, last_slot = ARGV[pushes[i] + 1], string.match(ARGV[last_push + 1], "%d+$")
      notes[#notes + 1] = first .. ".." .. last_slot .. " skipped " .. n_push .. " backlog"
      left, last_push = left + n_push, 0
    end
    if left > 0 then -- they did not run: only here it is known how many
      local how_far, runs, rest = string.match(to, "^(%d+ %d+) (%d+) (.*)$")
      to = how_far .. " " .. int(math.max(runs - left, 0)) .. " " .. rest
      dropped[#dropped + 1], dropped[#dropped + 2] = i - 1, left
    end
    if to ~= expect then
      becomes[#becomes + 1], becomes[#becomes + 2] = name, to
    end
    if owes ~= remains then
      debts[name] = owes ~= "" and owes or nil
      if remains ~= "" then
        owing[#owing + 1], owing[#owing + 2] = name, remains
      else
        settled[#settled + 1] = name
      end
    end
    local k = before
    for p = pushes[i], last_push, 4 do
      k = k + 1
      if stands[k] and taken(name, stands[k]) then
        notes[#notes + 1] = ARGV[p + 1] .. " skipped taken"
      else
        push(ARGV[p], ARGV[p + 1], ARGV[p + 2], ARGV[p + 3])
      end
    end
  end
  before = before + n_push
end

-- back adds an undo that restores fields of a hash to what they had. It is all the same for fields that were not written.
local function back(hash, fields, had)
  undos[#undos + 1] = function()
    for i, field in ipairs(fields) do
      if had[i] then
        redis.pcall("HSET", hash, field, had[i])
      else
        redis.pcall("HDEL", hash, field)
      end
    end
  end
end

if #becomes + #owing + #settled + #records > 0 then
  redis.call("ZADD", watch, "XX", 0, nobody)
  try_removal("HDEL", tasks)
  back(leader, { "sign" }, { lead[4] })
  redis.call("HSET", leader, "sign", int(now)) -- a sign of life, see look.lua
end
back(last, names, current)
many("HSET", last, becomes)
for i = 1, #owing, 2 do
  back(behind, { owing[i] }, { debts[owing[i]] })
end
many("HSET", behind, owing)
back(tasks, pushed, stands)
many("HSET", tasks, records)
for lane, set in pairs(sets) do
  local key = KEYS[10 + tonumber(lane)]
  undo_added(key, set)
  many("ZADD", key, set)
end
if #used > 0 then
  lanes_known(lanes, meta, channel, used, "schedules")
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
