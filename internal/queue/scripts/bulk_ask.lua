-- bulk_ask.lua begins a bulk action, or does to it what a person asks.
--
-- KEYS[1] bulk hash id -> record (see lib_bulk.lua)  KEYS[2] tasks hash  KEYS[3] dead zset  KEYS[4] events stream
-- KEYS[5] lanes hash  KEYS[6] meta hash  KEYS[7] watch zset  KEYS[8] due set of the task
-- ARGV[1] id  [2] begin; stop; or resume, one that was stopped or has failed  [3] who asks  [4] action  [5] filter  [6] about how many tasks match  [7] most open bulk actions  [8] most of one
--     sender  [9] most that are kept  [10] how long one is kept after its end, ms  [11] how long its worker may be silent, ms
--     [12] cap of events  [13] a new turn; with stop, the turn to stop, or "" for any  [14] wake channel  [15] lane of the task  [16] its record  [17] reason, or ""
-- Returns {now, "ok", record}: one in another state stays as it is. Or, having done nothing, {now, "none"} if there is no such
-- bulk action, and {now, "all"} or {now, "own"} by the bound that it would break. O(bulk actions).
local hash, tasks, dead, events, lanes, meta, watch, due = unpack(KEYS)
local id, asked, by, keep, silence, cap = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[10]), tonumber(ARGV[11]), ARGV[12]

local function task_of(b)
  return "onbeat.bulk:" .. b.id .. ":" .. b.turn
end

-- stalled reports whether a bulk action is open and has no worker: it is silent, and its task has died or is gone.
local function stalled(b)
  local task = task_of(b)
  return is_open(b) and math.abs(now - b.at) >= silence -- the clock may have been set back
    and (redis.call("HEXISTS", tasks, task) == 0 or redis.call("ZSCORE", dead, task) ~= false)
end

-- all returns the records that can be read, and the ids of the others.
local function all()
  local list, damaged, rows = {}, {}, redis.call("HGETALL", hash)
  for i = 1, #rows, 2 do
    local b = bulk(rows[i], rows[i + 1])
    list[#list + 1] = b
    damaged[#damaged + 1] = not b and rows[i] or nil
  end
  return list, damaged
end

-- crowded returns the bound that one more open bulk action of a sender would break, or nil.
local function crowded(list, sender)
  local open, own = 0, 0
  for _, b in ipairs(list) do
    if is_open(b) and not stalled(b) then
      open, own = open + 1, own + (b.by == sender and 1 or 0)
    end
  end
  return open >= tonumber(ARGV[7]) and "all" or own >= tonumber(ARGV[8]) and "own" or nil
end

-- begin notes a bulk action, and adds the task that does it.
local function begin(b)
  put(hash, b, keep)
  redis.call("HSET", tasks, task_of(b), ARGV[16])
  redis.call("ZADD", due, now, task_of(b))
  record(events, cap, "event", "bulk begun", "bulk", id, "action", b.action, "filter", b.filter, unpack(given("by", by, "reason", b.reason)))
  lanes_known(lanes, meta, ARGV[14], { ARGV[15] })
  wake(watch, ARGV[14], now, nil, nil, true)
end

local b = bulk(id, redis.call("HGET", hash, id))
if asked == "begin" and not b then
  local list, gone = all()
  local full = crowded(list, by)
  if full then
    return { now, full }
  end
  table.sort(list, function(x, y) return x.at < y.at end)
  local left = #list
  for _, x in ipairs(list) do
    if not is_open(x) and (x.at + keep <= now or left >= tonumber(ARGV[9])) then
      gone[#gone + 1] = x.id
      left = left - 1
    end
  end
  b = {
    id = id, state = "waiting", action = ARGV[4], turn = ARGV[13], fence = 0, begun = now, at = now, about = ARGV[6],
    matched = "0", changed = "0", unreadable = "0", short = "0", by = by, filter = ARGV[5], cursor = "", said = "", reason = ARGV[17],
  }
  begin(b)
  remove_last("HDEL", hash, gone)
elseif not b then
  return { now, "none" }
elseif asked == "stop" and is_open(b) and (ARGV[13] == "" or ARGV[13] == b.turn) then
  b.state, b.at, b.said = "stopped", now, by -- the worker learns of it with its next note, which it may still make
  put(hash, b, keep)
  record(events, cap, "event", "bulk stopped", "bulk", id, "action", b.action, "filter", b.filter, "matched", b.matched,
    "changed", b.changed, unpack(given("by", by, "reason", b.reason)))
elseif asked == "resume" and (b.state == "stopped" or b.state == "failed" or stalled(b)) then
  local full = crowded((all()), b.by)
  if full then
    return { now, full }
  end
  b.state, b.turn, b.fence, b.at, b.said = "waiting", ARGV[13], 0, now, ""
  begin(b)
end
return { now, "ok", bulk_text(b) }
