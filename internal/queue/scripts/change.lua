-- change.lua creates, changes, pauses, resumes, retires or deletes schedules. In the same step it removes the slots that
-- the leader has pushed ahead of now, so the change holds for every later slot. It keeps a record of a retired schedule,
-- because the release that declared it may come back, and of a deleted one, because a person may restore it. It notes what
-- each schedule said, and who made it say so.
--
-- KEYS[1] schedules hash    schedule -> definition
-- KEYS[2] last      hash    schedule -> "rev slot runs anchor paused"
-- KEYS[3] changed   zset    schedule -> version
-- KEYS[4] tasks     hash    KEYS[5] meta hash  KEYS[6] leader hash
-- KEYS[7] history   stream  KEYS[8] events stream
-- KEYS[9] ..        due sets, and the last six:
-- behind      hash  schedule -> missed slots that are still to be pushed
-- retired     hash  schedule -> three lines: "when retired release" (the release that retired it) or "when deleted who",
--                   last run, definition
-- retirements zset  schedule -> when it was retired or deleted
-- revisions   hash  schedule -> a line for each revision, the newest first: "revision before when what who", a tab, definition;
--   before is the revision before it, or 0 if none was known: a reader sees whether lines are missing
-- health      hash  schedule -> how its slots went
-- pauses      hash  schedule that is paused, also a deleted or retired one -> two lines: "when who", why
--
-- ARGV[1] wake channel  [2] cap of history  [3] cap of events  [4] epoch that must still lead, or ""
-- ARGV[5] who asks for the changes, or ""
-- then n schedules, then for each:
--   name, last run as it was read ("" for none, "never" for none of which anything is known), definition ("" leaves it, "-" deletes, "~release" retires),
--   anchor (unix ms, "+ms" from now, "^ms" the next multiple, "" leaves it), paused ("0", "1", "" leaves it),
--   slot ("" leaves the last run; "now" or unix ms moves it there), event, what changes (for the event) or "",
--   note for the history or "",
--   how many runs a schedule that is made again has had,
--   the slots it was behind with as they were read, the slots it is behind with afterwards ("" for none; if both are
--   equal, the script leaves them alone),
--   why it is paused, or "",
--   the note on its pause before Redis lost it, or "",
--   lane of its tasks, n series of slots ahead of now, newest first, then for each: its last slot (unix ms), the ms
--   between two slots, how many slots
--
-- Returns {now, then the indexes from 0 of the schedules that had changed: the script did nothing for them}.
-- Errors: NOTLEADER, PARTITIONS. O(n + ahead * log(due)), and 256 KiB a schedule.
--
-- At maxmemory Redis refuses a script's first write if that may take memory, and only the first. So the first write is
-- chosen: to pause, resume, delete or retire passes; a call that brings a definition is refused as a whole.
local schedules, last, changed, tasks, meta, leader, history, events = unpack(KEYS, 1, 8)
local behind, retired, retirements, revisions, health, pauses = unpack(KEYS, #KEYS - 5, #KEYS)
local channel, epoch, actor = ARGV[1], ARGV[4], ARGV[5]
if epoch ~= "" and redis.call("HGET", leader, "epoch") ~= epoch then
  return redis.error_reply("NOTLEADER epoch " .. (redis.call("HGET", leader, "epoch") or "0"))
end
local split = redis.call("HGET", meta, "partitions")
if split then
  return redis.error_reply("PARTITIONS " .. split)
end

local defines, head = false, 7
for _ = 1, tonumber(ARGV[6]) do
  defines = defines or ARGV[head + 2] ~= "" and not string.find(ARGV[head + 2], "^[-~]")
  head = head + 16 + 3 * tonumber(ARGV[head + 15])
end
if defines then
  redis.call("ZADD", changed, "XX", 0, "") -- changes nothing: no schedule has that name
else
  redis.call("ZREM", changed, "")
end

local at = 6
local function arg()
  at = at + 1
  return ARGV[at - 1]
end

-- Slots may have come up to the last heartbeat, also if the clock was set back since. (A beat more than a day ahead is damage.)
local beat = num(redis.call("HGET", meta, "beat")) or 0
local come = beat - now <= 86400000 and math.max(now, beat) or now
local withdrawn = {}

-- withdraw removes the slots that were pushed ahead of now. It returns the last run afterwards, and how many slots left. A slot that may
-- have come is removed only if it waits for its first run: one that has run, or waits for another attempt, must not come again.
local function withdraw(name, lane, n, slot)
  local stays, left = slot, 0
  for _ = 1, n do
    local ms, every, count = tonumber(arg()), tonumber(arg()), tonumber(arg())
    while count > 0 and ms > now do
      local task, ahead = name .. "@" .. int(ms), ms > come
      local waits = ahead or tonumber(redis.call("ZSCORE", KEYS[8 + lane], task) or -1) == ms
      local found = waits and redis.call("ZREM", KEYS[8 + lane], task) == 1
      if found then
        withdrawn[#withdrawn + 1] = task
        left = left + 1
      end
      if found or ahead then
        stays = math.min(stays, ahead and come or ms - 1)
      end
      ms, count = ms - every, count - 1
    end
  end
  return stays, left
end

-- plain takes out of a text what would break a line.
local function plain(text)
  return (string.gsub(text, "\n", " "))
end

-- remember adds a revision to those of a schedule: 50 of them, and 256 KiB, are kept.
local function remember(name, rev, what, who, definition)
  local past, kept, size = redis.call("HGET", revisions, name) or "", {}, 0
  local before = string.match(past, "^%d+") or "0"
  local newest = int(rev) .. " " .. before .. " " .. int(now) .. " " .. what .. " " .. string.gsub(who, "%c", " ") .. "\t" .. plain(definition)
  for text in string.gmatch(newest .. "\n" .. past, "[^\n]+") do
    size = size + #text + 1
    if size > 262144 and #kept == 0 then
      text, size = string.match(text, "^.-\t"), 0
    end
    if size > 262144 or #kept == 50 then
      break
    end
    kept[#kept + 1] = text
  end
  redis.call("HSET", revisions, name, table.concat(kept, "\n"))
end

-- renote puts a definition that says the same as before in its place in the newest revision.
local function renote(name, said, definition)
  local past = redis.call("HGET", revisions, name) or ""
  local head, noted, rest = string.match(past, "^([^\n]-)\t([^\n]*)(.*)$")
  if noted and noted == plain(said) then
    local text = plain(definition)
    if #head + #text + #rest > 262144 then
      text = ""
    end
    redis.call("HSET", revisions, name, head .. "\t" .. text .. rest)
  end
end

-- The version is larger than the last one and at least the clock, like every number that must rise even after Redis has
-- lost its last writes.
local version = num(redis.call("HGET", meta, "schedules")) or 0
local moved, notes, any = {}, {}, false
for i = 1, tonumber(arg()) do
  local name, expect, definition, anchor, paused, slot = arg(), arg(), arg(), arg(), arg(), arg()
  local event, changes, note, had, owed, remains = arg(), arg(), arg(), tonumber(arg()), arg(), arg()
  local reason, noted, lane, n = arg(), arg(), tonumber(arg()), tonumber(arg())
  local current = redis.call("HGET", last, name) or ""
  if expect == "never" and not redis.call("ZSCORE", changed, name) then
    expect = ""
  end
  if current ~= expect or current ~= "" and owed ~= remains and (redis.call("HGET", behind, name) or "") ~= owed then
    moved[#moved + 1] = i - 1
    at = at + 3 * n
  else
    any = true
    local rev, was, runs, zero, stopped = string.match(current, "^(%d+) (%d+) (%d+) (%d+) (%d)$")
    rev, was, runs = tonumber(rev or 0), tonumber(was or 0), tonumber(runs or 0)
    zero, stopped = zero or "0", stopped or "0"
    local stays, left = withdraw(name, lane, n, was)
    -- A schedule that is made again begins a millisecond later, because a slot of now may exist under the same ID.
    local again = current == "" and redis.call("ZSCORE", changed, name)
    version = math.max(version + 1, come)
    redis.call("ZADD", changed, int(version), name)
    if slot == "now" then
      stays = math.max(stays, now)
    elseif slot ~= "" then
      stays = math.max(stays, math.min(tonumber(slot), come)) -- never past what may have come, even if the caller's clock is ahead
    end
    local by = string.match(definition, "^~(.*)$")
    local said = definition ~= "" and redis.call("HGET", schedules, name) or ""
    if remains ~= "" then
      redis.call("HSET", behind, name, remains)
    elseif owed ~= "" or current == "" or by or definition == "-" then
      redis.call("HDEL", behind, name)
    end
    if by or definition == "-" and current ~= "" then
      redis.call("HSET", retired, name, table.concat({
        int(now) .. (by and " retired " or " deleted ") .. (by or string.gsub(actor, "%c", " ")),
        table.concat({ int(rev or 0), int(stays), int(runs - left), zero, stopped }, " "),
        said,
      }, "\n"))
      redis.call("ZADD", retirements, now, name)
    elseif definition == "-" then -- a caller deletes half a schedule: only its revisions stay
      redis.call("ZADD", retirements, now, name)
    elseif current == "" then
      redis.call("HDEL", retired, name)
      redis.call("ZREM", retirements, name)
    end
    -- The revision never repeats, even if a schedule is deleted and made again: version is larger than any before.
    local becomes = math.max(rev + 1, version)
    local what = string.match(event, "%a*$")
    if what == "sealed" and rev > 0 then -- the definition says the same: no revision, and the number stays valid
      becomes = rev
      renote(name, said, definition)
    elseif definition ~= "" then
      remember(name, becomes, what, by or actor, (by or definition == "-") and "" or definition)
    end
    if by or definition == "-" then
      redis.call("HDEL", schedules, name)
      redis.call("HDEL", last, name)
      redis.call("HDEL", meta, "backlog:" .. name)
      redis.call("HDEL", health, name)
    else
      if definition ~= "" then
        redis.call("HSET", schedules, name, definition)
      end
      -- If the last run moves to now, slot zero must come after now, or it would count as done.
      local kind, base = string.sub(anchor, 1, 1), slot == "" and not again and now or now + 1
      if kind == "+" then
        zero = int(base + tonumber(string.sub(anchor, 2)))
      elseif kind == "^" then
        local step = tonumber(string.sub(anchor, 2))
        zero = int(math.ceil(base / step) * step)
      elseif anchor ~= "" then
        zero = anchor
      end
      redis.call("HSET", last, name, table.concat({
        int(becomes), int(stays), int(runs + had - left), zero, paused == "" and stopped or paused,
      }, " "))
      if noted ~= "" then
        redis.call("HSET", pauses, name, noted)
      elseif what == "paused" or paused == "1" and reason ~= "" then -- another reason leaves since when it is paused
        local since = stopped == "1" and string.match(redis.call("HGET", pauses, name) or "", "^%d+") or int(now)
        redis.call("HSET", pauses, name, since .. " " .. string.gsub(actor, "%c", " ") .. "\n" .. string.gsub(reason, "%c", " "))
      elseif paused == "0" or current == "" and paused == "" then
        redis.call("HDEL", pauses, name)
      end
    end
    if note ~= "" then
      notes[#notes + 1] = note
    end
    record(events, ARGV[3], "event", event, "schedule", name, unpack(given("release", by, "by", actor, "changes", changes, "reason", reason)))
  end
end
if #notes > 0 then
  record(history, ARGV[2], "slots", table.concat(notes, "\n"))
end
if any then
  redis.call("HSET", meta, "schedules", int(version))
  tell(channel, "schedules")
end
remove_last("HDEL", tasks, withdrawn)
return { now, unpack(moved) }
