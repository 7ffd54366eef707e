-- cycle.lua settles a batch of runs that ended and claims due tasks, in one step. The second half, which claims and
-- replies, is cycle_claim.lua.
--
-- KEYS[1]  instances  zset    id -> lease end (unix ms)
-- KEYS[2]  members    hash    id -> "generation order state ..."
-- KEYS[3]  leader     hash    id, gen, order, consume, open
-- KEYS[4]  meta       hash    fence, lanes, counters
-- KEYS[5]  watch      zset    see lib_wake.lua: who will look again, and when
-- KEYS[6]  tasks      hash    task -> record
-- KEYS[7]  running    hash    of this generation: task -> "fence claimed due <1f>limit..", "" -> last seq, with zeros
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
-- ARGV[9] a name for the lanes it reads: who has the same reads the same  [10] n lanes, then for each: its group (lanes
--     of one group share), most to run at once (0: no limit, -1: not ours to claim), its name
-- then n settled, the end if there are none; their ids; n runs of settled of one claim, then for each: its fence, how
-- many; then, in this order:
--   n finished
--   n kept, then for each: ms to keep, record
--   n moved, then for each: lane, due ("+ms" from now), record ("" leaves it)
--   n died, then for each: record
--   n notes, then for each: number among the settled, text for the history
--
-- Returns {now in microseconds, next due or -1, flags, lanes version, fence, void indexes joined by ",", skipped,
--   then for each lane that gave tasks, and each time it did: its number, ids, dues, record lengths (each joined by
--   newlines), records}.
-- flags: 1 may claim, 2 watches next due, 4 due work left behind.
-- Errors: FENCED (not registered, or the lease ran out), STALE seq (this call, or a later one, ran before).
--
-- O(batch * log(due)). At maxmemory only the first write of a script is refused if it may take memory, so the first
-- is the ZREM: settling, which frees memory, must always pass.
local instances, members, leader, meta, watch, tasks, running = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local done, dead, history, active, held, cancel = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local lanes_hash, first_lane = KEYS[14], 14
local id, gen, seq, want, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[8]
local reads = ARGV[9]
local me = reads == "" and id or id .. "\31" .. reads
want = math.min(want, chunk)

local alive, member = live(instances, members, id, gen)
if not alive then
  return redis.error_reply("FENCED instance " .. id)
end
local last_seq = tonumber(redis.call("HGET", running, "") or 0)
if seq <= last_seq then
  return redis.error_reply("STALE " .. int(last_seq))
end
redis.call("ZREM", watch, me)

local at = 10
local function arg()
  at = at + 1
  return ARGV[at - 1]
end

local lanes = {}
for i = 1, tonumber(arg()) do
  lanes[i] = { key = KEYS[first_lane + i], number = i, group = arg(), limit = tonumber(arg()), name = arg() }
end
local declared
-- declare is the set of the due sets that this call named.
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
local ids, ok, void = at, {}, {} -- where the ids begin, which of them are settled, the indexes from 0 of the others
local i = 0 -- the settled looked at so far, over all blocks
local stirred -- the earliest moment at which settling lets a task start that could not before
local away = false -- one of them lies in a lane that is not ours
local function stir(due)
  stirred = math.min(stirred or due, due)
end

local function settled_id()
  return ARGV[ids + i - 1]
end

-- drop removes the settled ones numbered from on, up to the one numbered to, from a hash, and returns how many.
local function drop(key, from, to)
  local list = ARGV
  local first, last = ids + from - 1, ids + to - 1
  if #void > 0 then
    list, first = {}, 1
    for n = from, to do
      list[#list + 1] = ok[n] and ARGV[ids + n - 1] or nil
    end
    last = #list
  end
  if last >= first then
    redis.call("HDEL", key, unpack(list, first, last))
  end
  return last - first + 1
end

-- look notes which of n are still held, and returns the values of those that took of a limit.
local function look(n)
  local values = redis.call("HMGET", running, unpack(ARGV, ids, ids + n - 1))
  local limits = redis.call("EXISTS", active, held) > 0 -- else no value names any
  local limited = {}
  for _ = 1, tonumber(arg()) do
    local fence = arg() .. " "
    for _ = 1, tonumber(arg()) do
      i = i + 1
      local value = values[i]
      if value and string.find(value, fence, 1, true) == 1 then
        ok[i] = true
        if limits and string.find(value, "\31", 1, true) then
          limited[#limited + 1] = value
        end
      else
        void[#void + 1] = int(i - 1)
      end
    end
  end
  return limited
end

-- free takes the settled ones out of the running, and gives back what they took of their limits.
local function free(n)
  local limited, freed = look(n), {}
  drop(running, 1, n)
  for _, value in ipairs(limited) do
    unlimit(active, held, value, declare(), freed)
    stir(now)
  end
  for _, lane in ipairs(lanes) do
    away = away or lane.limit < 0 and freed[lane.key] or false
  end
end

local function finish(n)
  i = i + n
  return n > 0 and drop(tasks, i - n + 1, i) or 0
end

-- keep writes records that stay for a while, and returns how many.
local function keep(n)
  local ends, bodies = {}, {}
  for _ = 1, n do
    i = i + 1
    local ttl, body = tonumber(arg()), arg()
    if ok[i] then
      ends[#ends + 1], ends[#ends + 2] = int(now + ttl), settled_id()
      bodies[#bodies + 1], bodies[#bodies + 2] = settled_id(), body
    end
  end
  if #ends > 0 then
    many("HSET", tasks, bodies)
    many("ZADD", done, ends)
    -- What was kept long enough leaves, twice as fast as it can come in; so does what is over the cap.
    local old = redis.call("ZRANGEBYSCORE", done, "-inf", now, "LIMIT", 0, #ends)
    local over = redis.call("ZCARD", done) - #old - tonumber(ARGV[7])
    if over > 0 then
      old = redis.call("ZRANGE", done, 0, #old + math.min(over, chunk) - 1)
    end
    many("ZREM", done, old)
    many("HDEL", tasks, old)
  end
  return #ends / 2
end

-- move puts tasks back into their due sets, and returns how many of them with a new record.
local function move(n)
  local sets, bodies, used = {}, {}, {}
  for _ = 1, n do
    i = i + 1
    local lane, due, body = lanes[tonumber(arg())], arg(), arg()
    if ok[i] then
      if string.byte(due) == 43 then
        due = int(now + tonumber(string.sub(due, 2)))
      end
      stir(tonumber(due))
      local set = sets[lane.key]
      if not set then
        set = {}
        sets[lane.key] = set
        used[#used + 1] = lane.name
      end
      set[#set + 1], set[#set + 2] = due, settled_id()
      if body ~= "" then
        bodies[#bodies + 1], bodies[#bodies + 2] = settled_id(), body
      end
    end
  end
  many("HSET", tasks, bodies)
  for key, list in pairs(sets) do
    many("ZADD", key, list)
  end
  if #used > 0 then -- a lane that was empty while the task ran may have been forgotten meanwhile
    lanes_known(lanes_hash, meta, channel, used)
  end
  return #bodies / 2
end

-- die writes the records of tasks that are given up, and returns how many.
local function die(n)
  local died, bodies = {}, {}
  for _ = 1, n do
    i = i + 1
    local body = arg()
    if ok[i] then
      died[#died + 1], died[#died + 2] = int(now), settled_id()
      bodies[#bodies + 1], bodies[#bodies + 2] = settled_id(), body
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
  return #died / 2
end

-- remember writes down what became of slots.
local function remember(n)
  local notes = {}
  for _ = 1, n do
    local index, text = tonumber(arg()), arg()
    if ok[index] then
      notes[#notes + 1] = text
    end
  end
  if #notes > 0 then
    record(history, ARGV[5], "runs", table.concat(notes, "\n"), "gen", gen)
  end
end

local function count(field, n)
  if n > 0 then
    redis.call("HINCRBY", meta, field, n)
  end
end

local function settle()
  local n = tonumber(arg())
  if n == 0 then
    return
  end
  ids, at = at, at + n
  free(n)
  i = 0
  local ended = finish(tonumber(arg()))
  ended = ended + keep(tonumber(arg()))
  local moved = move(tonumber(arg()))
  local died = die(tonumber(arg()))
  remember(tonumber(arg()))
  count("done", ended)
  count("retried", moved)
  count("died", died)
end
