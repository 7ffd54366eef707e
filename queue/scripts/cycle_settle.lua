-- cycle_settle.lua is the part of cycle.lua, which names keys and arguments, that settles. Its functions lie in one,
-- because a function costs most where it is made, and many calls have nothing to settle.

local void = {} -- the indexes from 0 of what is not held any more
local refused = {} -- the indexes of what was to be moved, and is to be cancelled: it stays held
local stirred -- the earliest moment at which settling lets a task start that could not before
local away = false -- one of them lies in a lane that is not ours

-- settle ends n runs: those that this generation still holds under the same fence. Everything else is void. It returns
-- the keys of which a run ended.
local function settle(n)
  local finished, kept, moved, died = tonumber(arg()), tonumber(arg()), tonumber(arg()), tonumber(arg())
  local ids, ok = at, {} -- where the ids begin, which of them are settled
  local i = 0 -- the settled looked at so far, over all blocks
  at = at + n

  local function stir(due)
    stirred = math.min(stirred or due, due)
  end

  local function settled_id()
    return ARGV[ids + i - 1]
  end

  -- settled_from is the ids of the settled ones numbered from on, up to the one numbered to: a list, and which part of it.
  local function settled_from(from, to)
    if #void + #refused == 0 then
      return ARGV, ids + from - 1, ids + to - 1
    end
    local list = {}
    for n = from, to do
      list[#list + 1] = ok[n] and ARGV[ids + n - 1] or nil
    end
    return list, 1, #list
  end

  -- look notes which of n are to be settled: those still held, but not to be moved when somebody asked to cancel them.
  -- It returns the values of those that took of a limit.
  local values
  local function look(n)
    values = redis.call("HMGET", running, unpack(ARGV, ids, ids + n - 1))
    local limits = redis.call("EXISTS", active, held) > 0 -- else no value names any
    local requests = moved > 0 and redis.call("EXISTS", cancel) > 0
    local limited = {}
    for _ = 1, tonumber(arg()) do
      local fence = arg() .. " "
      for _ = 1, tonumber(arg()) do
        i = i + 1
        local value = values[i]
        if value and string.find(value, fence, 1, true) == 1 then
          if requests and i > finished + kept and i <= finished + kept + moved and asked(cancel, settled_id(), value) then
            refused[#refused + 1] = int(i - 1)
          else
            ok[i] = true
            if limits and string.find(value, "\31", 1, true) then
              limited[#limited + 1] = value
            end
          end
        else
          void[#void + 1] = int(i - 1)
        end
      end
    end
    return limited
  end

  -- free takes the settled ones out of the running, and gives back what they took of their limits.
  local function free(n, limited)
    local list, first, last = settled_from(1, n)
    if last >= first then
      redis.call("HDEL", running, unpack(list, first, last))
      undos[#undos + 1] = function()
        for k = 1, n do
          if ok[k] then
            redis.pcall("HSET", running, ARGV[ids + k - 1], values[k])
          end
        end
      end
    end
    for _, value in ipairs(limited) do
      if string.find(value, "\31t:", 1, true) then -- which of the type is due is not known here
        stir(now)
      end
    end
    return unlimit(active, limited)
  end

  local function finished_ones(n)
    i = i + n
    local list, first, last = settled_from(i - n + 1, i)
    remove_last("HDEL", tasks, list, first, last)
    return last - first + 1
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
      many("ZADD", done, ends)
      undo_added(done, ends)
      many("HSET", tasks, bodies)
      -- What was kept long enough leaves, twice as fast as it can come in; so does what is over the cap.
      local old = redis.call("ZRANGEBYSCORE", done, "-inf", now, "LIMIT", 0, #ends)
      local over = redis.call("ZCARD", done) - #old - tonumber(ARGV[7])
      if over > 0 then
        old = redis.call("ZRANGE", done, 0, #old + math.min(over, chunk) - 1)
      end
      remove_last("ZREM", done, old)
      remove_last("HDEL", tasks, old)
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
        away = away or lane.limit < 0
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
    for key, list in pairs(sets) do
      many("ZADD", key, list)
      undo_added(key, list)
    end
    many("HSET", tasks, bodies)
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
      many("ZADD", dead, died)
      undo_added(dead, died)
      many("HSET", tasks, bodies)
      local over = redis.call("ZCARD", dead) - tonumber(ARGV[6])
      if over > 0 then
        local old = redis.call("ZRANGE", dead, 0, math.min(over, chunk) - 1)
        remove_last("ZREM", dead, old)
        remove_last("HDEL", tasks, old)
      end
    end
    return #died / 2
  end

  -- remember notes what became of slots.
  local function remember(n)
    for _ = 1, n do
      local index, text, report = tonumber(arg()), arg(), arg()
      if ok[index] then
        notes[#notes + 1] = text
        more[#notes] = report
      end
    end
  end

  local function rise(field, n)
    if n > 0 then
      rises[#rises + 1], rises[#rises + 2] = field, int((num(counters[field]) or 0) + n)
    end
  end

  local limited = look(n)
  i = 0
  rise("done", finished_ones(finished) + keep(kept))
  rise("retried", move(moved))
  rise("died", die(died))
  remember(tonumber(arg()))
  return free(n, limited)
end

local lines, owed = {}, {} -- of keys; the keys with tasks that wait in lanes that were not declared

-- release lets those have keys who wait for them, and reports whether there were any: as many as there is room for, the
-- first in line; and then, where a claim has left room, as many in each lane, because the first may lie where nobody
-- reads, or has a worker free.
local function release(keys, left)
  local declared, freed = {}, {}
  for _, lane in ipairs(lanes) do
    declared[lane.key] = true
  end
  for _, key in ipairs(keys) do
    if not left then
      lines[key] = line_of(tasks, held, key)
    end
    if lines[key] and unhold(active, held, key, lines[key], left and chunk, declared, freed) and left then
      owed[#owed + 1] = key
    end
  end
  for _, lane in ipairs(lanes) do
    if freed[lane.key] then
      lane.first, stirred = nil, math.min(stirred or now, now)
      away = away or lane.limit < 0
    end
  end
  return next(freed) ~= nil
end
