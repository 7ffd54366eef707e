-- cycle.lua settles a batch of runs that ended and claims due tasks, in one step.
--
-- KEYS[1]  instances  zset    id -> lease end (unix ms)
-- KEYS[2]  members    hash    id -> "generation order state ..."
-- KEYS[3]  leader     hash    id, gen, order, consume, open
-- KEYS[4]  meta       hash    fence, lanes, counters
-- KEYS[5]  watch      zset    id -> the moment it will look again
-- KEYS[6]  tasks      hash    task -> record
-- KEYS[7]  running    hash    of this generation: task -> "fence claimed due <1f>limit..", "" -> last seq
-- KEYS[8]  done       zset    task -> end of keeping
-- KEYS[9]  dead       zset    task -> when it died
-- KEYS[10] history    stream  what became of the slots of schedules
-- KEYS[11] active     hash    "k:key" or "t:type" -> running
-- KEYS[12] held       zset    see lib_held.lua
-- KEYS[13] cancel     hash    task or "k:key" -> "fence asked-at"
-- KEYS[14] lanes      hash    lane -> last seen in use (unix ms)
-- KEYS[15..] due sets, one a lane, in the order in which they are to be read
--
-- ARGV[1] id  [2] generation  [3] seq: larger than in every earlier call of this generation
-- ARGV[4] want: most tasks to claim  [5] cap of history  [6] cap of dead  [7] cap of done  [8] wake channel
-- ARGV[9] n lanes, then for each: group (lanes of one group share), most to run at once (0: no limit, -1: not ours
--         to claim), its name
-- then n settled, n ids, n fences; of these, in this order:
--   n finished
--   n kept, then for each: ms to keep, record
--   n moved, then for each: lane, due ("+ms" from now), record ("" leaves it)
--   n died, then for each: record
-- then n notes, then for each: index among the settled, text for the history
--
-- Returns {now in microseconds, next due or -1, flags, lanes version, fence, void indexes joined by ",", skipped,
--   then for each lane that gave tasks: its number, ids, dues, record lengths (each joined by newlines), records}.
-- flags: 1 may claim, 2 watches next due, 4 due work left behind.
-- Errors: FENCED (not registered, or the lease ran out), STALE seq (this call, or a later one, ran before).
--
-- O(batch * log(due)). At maxmemory only the first write of a script is refused if it may take memory, so the first
-- is the ZREM: settling, which frees memory, must always pass.
local instances, members, leader, meta, watch, tasks, running = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local done, dead, history, active, held, cancel = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local lanes_hash, first_lane = KEYS[14], 14
local id, gen, seq, want, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[8]
want = math.min(want, chunk)

local alive, member = live(instances, members, id, gen)
if not alive then
  return redis.error_reply("FENCED instance " .. id)
end
local last_seq = tonumber(redis.call("HGET", running, "") or 0)
if seq <= last_seq then
  return redis.error_reply("STALE " .. int(last_seq))
end
redis.call("ZREM", watch, id)

local at = 9
local function arg()
  at = at + 1
  return ARGV[at - 1]
end

local lanes = {}
for i = 1, tonumber(arg()) do
  lanes[i] = { key = KEYS[first_lane + i], number = i, group = arg(), limit = tonumber(arg()), name = arg() }
end
local declared
local function declare()
  if not declared then
    declared = {}
    for _, lane in ipairs(lanes) do
      declared[lane.key] = true
    end
  end
  return declared
end

-- Settle: only what this generation still holds under the same fence. Everything else is void.
local void = {}
local stirred -- the earliest moment at which settling lets a task start that could not before
local function stir(due)
  stirred = math.min(stirred or due, due)
end

local function settle()
  local n = tonumber(arg())
  local ids, fences, ok = at, at + n, {}
  at = at + 2 * n
  if n > 0 then
    local gone, limited = {}, {}
    local values = redis.call("HMGET", running, unpack(ARGV, ids, ids + n - 1))
    for i = 1, n do
      local value, fence = values[i], ARGV[fences + i - 1] .. " "
      if value and string.sub(value, 1, #fence) == fence then
        ok[i] = true
        gone[#gone + 1] = ARGV[ids + i - 1]
        if string.find(value, "\31", 1, true) then
          limited[#limited + 1] = value
        end
      else
        void[#void + 1] = int(i - 1)
      end
    end
    many("HDEL", running, gone)
    for _, value in ipairs(limited) do
      unlimit(active, held, value, declare())
      stir(now)
    end
  end
  local i = 0 -- index among the settled, over all four blocks

  local finished = {}
  for _ = 1, tonumber(arg()) do
    i = i + 1
    if ok[i] then
      finished[#finished + 1] = ARGV[ids + i - 1]
    end
  end
  many("HDEL", tasks, finished)
  local ended = #finished

  local kept, keptrecords = {}, {}
  for _ = 1, tonumber(arg()) do
    i = i + 1
    local ttl, body = tonumber(arg()), arg()
    if ok[i] then
      kept[#kept + 1], kept[#kept + 2] = int(now + ttl), ARGV[ids + i - 1]
      keptrecords[#keptrecords + 1], keptrecords[#keptrecords + 2] = ARGV[ids + i - 1], body
    end
  end
  if #kept > 0 then
    many("HSET", tasks, keptrecords)
    many("ZADD", done, kept)
    ended = ended + #kept / 2
    -- What was kept long enough leaves, twice as fast as it can come in; so does what is over the cap.
    local old = redis.call("ZRANGEBYSCORE", done, "-inf", now, "LIMIT", 0, #kept)
    local over = redis.call("ZCARD", done) - #old - tonumber(ARGV[7])
    if over > 0 then
      old = redis.call("ZRANGE", done, 0, #old + math.min(over, chunk) - 1)
    end
    many("ZREM", done, old)
    many("HDEL", tasks, old)
  end

  local moved = 0
  local sets, rewritten, used = {}, {}, {}
  for _ = 1, tonumber(arg()) do
    i = i + 1
    local lane, due, body = tonumber(arg()), arg(), arg()
    if ok[i] then
      if string.byte(due) == 43 then
        due = int(now + tonumber(string.sub(due, 2)))
      end
      stir(tonumber(due))
      local key = KEYS[first_lane + lane]
      local set = sets[key]
      if not set then
        set = {}
        sets[key] = set
        used[#used + 1] = lanes[lane].name
      end
      set[#set + 1], set[#set + 2] = due, ARGV[ids + i - 1]
      if body ~= "" then
        rewritten[#rewritten + 1], rewritten[#rewritten + 2] = ARGV[ids + i - 1], body
        moved = moved + 1
      end
    end
  end
  many("HSET", tasks, rewritten)
  for key, list in pairs(sets) do
    many("ZADD", key, list)
  end
  if #used > 0 then -- a lane that was empty while the task ran may have been forgotten meanwhile
    lanes_known(lanes_hash, meta, channel, used)
  end

  local died, bodies = {}, {}
  for _ = 1, tonumber(arg()) do
    i = i + 1
    local body = arg()
    if ok[i] then
      died[#died + 1], died[#died + 2] = int(now), ARGV[ids + i - 1]
      bodies[#bodies + 1], bodies[#bodies + 2] = ARGV[ids + i - 1], body
    end
  end
  if #died > 0 then
    many("HSET", tasks, bodies)
    many("ZADD", dead, died)
    local over = redis.call("ZCARD", dead) - tonumber(ARGV[6])
    if over > 0 then
      local old = redis.call("ZRANGE", dead, 0, math.min(over, chunk) - 1)
      many("ZREM", dead, old)
      many("HDEL", tasks, old)
    end
  end

  local notes = {}
  for _ = 1, tonumber(arg()) do
    local index, text = tonumber(arg()), arg()
    if ok[index] then
      notes[#notes + 1] = text
    end
  end
  if #notes > 0 then
    record(history, ARGV[5], "runs", table.concat(notes, "\n"), "gen", gen)
  end
  if ended > 0 then
    redis.call("HINCRBY", meta, "done", ended)
  end
  if moved > 0 then
    redis.call("HINCRBY", meta, "retried", moved)
  end
  if #died > 0 then
    redis.call("HINCRBY", meta, "died", #died / 2)
  end
end

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
  looks = looks - #ids
  redis.call("ZREMRANGEBYRANK", lane.key, 0, #ids - 1)
  local records = redis.call("HMGET", tasks, unpack(ids))
  local out = lane.out or { {}, {}, {}, {} }
  lane.out = out
  local before = #out[1]
  local count = before
  for i, body in ipairs(records) do
    local tail = ""
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
    wake(watch, channel, now)
  elseif want > 0 then
    -- Two watch the next due time closely; the others wait until they are told, or a heartbeat finds it overslept.
    local due = next_due < 0 and never or next_due
    if next_due < 0 or redis.call("ZCOUNT", watch, "-inf", due) < 2 then
      flags = flags + 2
    else
      due = never
    end
    redis.call("ZADD", watch, due, id)
  end
end

if stirred and (flags == 0 or want == 0) then -- this instance will not look itself
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
