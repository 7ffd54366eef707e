-- move.lua adds tasks that another store holds too, such as a table of a database, until that store has removed them. Go puts
-- enqueue.lua before it, as the function enqueue. Each task that is added gets a mark in the same step. A task that has its mark
-- was moved before: it is not added again, even if it has run and nothing else is known of it any more.
--
-- KEYS    those of enqueue.lua, then the marks, one for each task (strings that expire)
-- ARGV    those of enqueue.lua, which has to look for IDs that exist; then the last moment at which tasks may be added (unix
--     ms), how long a mark stays (ms), n tasks
--
-- Returns {now} if that moment is over; {now, 0, and for each task that has its mark: its index from 0, "moved", ""} if there is
-- one: the caller leaves these out and calls again; else what enqueue.lua returns. Nothing is added in the first two cases.
-- O(n * log(due)).
local latest, stay, n = tonumber(ARGV[#ARGV - 2]), ARGV[#ARGV - 1], tonumber(ARGV[#ARGV])
local first = #KEYS - n -- the mark of task i is KEYS[first + i]
if now > latest then
  return { now }
end

if redis.call("EXISTS", unpack(KEYS, first + 1)) > 0 then
  local moved = {}
  for i = 1, n do
    -- A mark that is met again stays for as long again: the other store has not removed the task yet.
    if redis.call("PEXPIRE", KEYS[first + i], stay) == 1 then
      moved[#moved + 1], moved[#moved + 2], moved[#moved + 3] = i - 1, "moved", ""
    end
  end
  return { now, 0, unpack(moved) }
end

local reply, refused = enqueue(), {}
for i = 3, #reply, 3 do
  refused[reply[i] + 1] = true
end
undos[#undos + 1] = function()
  for i = first + 1, #KEYS do
    redis.pcall("DEL", KEYS[i])
  end
end
for i = 1, n do
  if not refused[i] then
    redis.call("SET", KEYS[first + i], "", "PX", stay)
  end
end
return reply
