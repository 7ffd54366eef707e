-- cycle_settle.lua is the part of cycle.lua that settles. cycle.lua names the keys and arguments. Its functions are made
-- inside one function, because to make a function costs more than to call it, and many calls have nothing to settle.

local void = {} -- the indexes from 0 of settlements whose claim is void
local refused = {} -- the indexes of tasks that were to be moved but are to be cancelled: their claims stay
local stirred -- the earliest moment at which a task may start because of what was settled
local away = false -- such a task lies in a lane from which the caller does not claim
local own_stirred = false -- such a task is the dispatcher's own

-- settle settles n runs, each if this generation still holds the claim under the same fence. The others are void. It
-- returns the keys of the runs that ended.
local function settle(n)
  local finished, kept, moved, died = tonumber(arg()), tonumber(arg()), tonumber(arg()), tonumber(arg())
  local ids, not_ok = at, {} -- where the ids begin in ARGV; the places of those that are not to be settled: none, mostly
  local i = 0 -- how many were looked at so far, over all blocks
  at = at + n

  local function stir(due)
    stirred = math.min(stirred or due, due)
  end

  local function settled_id()
    return ARGV[ids + i - 1]
  end

  -- settled_from returns the ids to settle among those numbered from..to: a list, and the first and last index in it.
  local function settled_from(from, to)
    if #void + #refused == 0 then
      return ARGV, ids + from - 1, ids + to - 1
    end
    local list = {}
    for n = from, to do
      list[#list + 1] = not not_ok[n] and ARGV[ids + n - 1] or nil
    end
    return list, 1, #list
  end

  -- look finds out which of n runs to settle: those whose claim is held, except tasks to be moved that a caller asked to
  -- cancel. It returns the values of the claims that count in a limit.
  local values
  local function look(n)
    values = redis.call("HMGET", running, unpack(ARGV, ids, ids + n - 1))
    local limits = redis.call("EXISTS", active, held) > 0 -- else no claim counts in a limit
    local requests = moved > 0 and redis.call("EXISTS", cancel) > 0
    local limited = {}
    for _ = 1, tonumber(arg()) do
      local fence, held_by = arg() .. " ", nil -- a value with that fence: most of the next ones are equal to it
      for _ = 1, tonumber(arg()) do
        i = i + 1
        local value = values[i]
        if value and (value == held_by or string.find(value, fence, 1, true) == 1) then
          held_by = value
          if requests and i > finished + kept and i <= finished + kept + moved and asked(cancel, settled_id(), value) then
            refused[#refused + 1], not_ok[i] = int(i - 1), true
          elseif limits and string.find(value, "\31", 1, true) then
            limited[#limited + 1] = value
          end
        else
          void[#void + 1], not_ok[i] = int(i - 1), true
        end
      end
    end
    return limited
  end

  -- free removes the settled claims from the running hash, and counts them off their limits. It returns their keys.
  local function free(n, limited)
    local list, first, last = settled_from(1, n)
    if last >= first then
      redis.call("HDEL", running, unpack(list, first, last))
      undos[#undos + 1] = function()
        for k = 1, n do
          if not not_ok[k] then
            redis.pcall("HSET", running, ARGV[ids + k - 1], values[k])
          end
        end
      end
    end
    for _, value in ipairs(limited) do
      if string.find(value, "\31t:", 1, true) then -- any lane of the type may have a due task: stir now
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

  -- keep writes the records of finished tasks that stay visible, and returns how many.
  local function keep(n)
    local ends, bodies = {}, {}
    for _ = 1, n do
      i = i + 1
      local ttl, body = tonumber(arg()), arg()
      if not not_ok[i] then
        ends[#ends + 1], ends[#ends + 2] = int(now + ttl), settled_id()
        bodies[#bodies + 1], bodies[#bodies + 2] = settled_id(), body
      end
    end
    if #ends > 0 then
      many("ZADD", done, ends)
      undo_added(done, ends)
      many("HSET", tasks, bodies)
      -- Tasks that were kept long enough leave, up to two for each that came; so do those over the cap.
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

  -- move puts tasks back into their due sets, and returns how many of them have a new record: those are retries.
  local function move(n)
    local sets, bodies, used = {}, {}, {}
    for _ = 1, n do
      i = i + 1
      local lane, due, body = lanes[tonumber(arg())], arg(), arg()
      if not not_ok[i] then
        if string.byte(due) == 43 then
          due = int(now + tonumber(string.sub(due, 2)))
        end
        stir(tonumber(due))
        away = away or lane.limit < 0
        own_stirred = own_stirred or lane.own
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
    if #used > 0 then -- tidy.lua may have removed a lane that was empty while its task ran
      lanes_known(lanes_hash, meta, channel, used)
    end
    return #bodies / 2
  end

  -- die makes tasks dead, and returns how many.
  local function die(n)
    local died, bodies = {}, {}
    for _ = 1, n do
      i = i + 1
      local body = arg()
      if not not_ok[i] then
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

  local function split(text)
    local list = {}
    for line in string.gmatch(text .. "\n", "([^\n]*)\n") do
      list[#list + 1] = line
    end
    return list
  end

  -- remember collects the notes for a stream: lines, reports and facts. It takes them as they are joined, unless some are to
  -- be left out. Without an archive there are no facts, and no notes but those for the history.
  local function remember(notes, more, facts)
    local n, places, lines, reports = tonumber(arg() or 0), nil, nil, nil
    if n > 0 then
      places, lines, reports = arg(), arg(), arg()
    end
    local told = arg()
    if n == 0 then
      return
    end
    if #void + #refused == 0 then
      notes[1], more[1], facts[1] = lines, reports, told
      return
    end
    local line, report, fact, k = split(lines), split(reports), told and split(told) or {}, 0
    for place in string.gmatch(places, "%d+") do
      k = k + 1
      if not not_ok[tonumber(place)] then
        notes[#notes + 1] = line[k]
        more[#notes], facts[#notes] = report[k], fact[k]
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
  remember(notes, more, facts)
  if runs then
    remember(unpack(others))
  end
  return free(n, limited)
end

local lines, owed = {}, {} -- key -> its line, see line_of; keys with tasks that wait in lanes that were not declared

-- release puts tasks that wait for the given keys back into their lanes, and reports whether there were any. At first it
-- puts back as many as the key has room for, the first in line. With left, after a claim that has left room, it looks
-- beyond them and puts back as many in each lane: the first in line may lie in a lane that no instance reads, or that no
-- instance with a free worker reads.
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
