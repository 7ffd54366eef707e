-- bulk_note.lua notes how far a bulk action is, if its worker still has it: by its turn, and by the fence of the claim of its task. A
-- later turn or claim makes the earlier ones void.
--
-- KEYS[1] bulk hash id -> record (see lib_bulk.lua)  KEYS[2] events stream
-- ARGV[1] id  [2] turn  [3] fence of the claim  [4] state: take, to begin with a claim; running; waiting, to leave
--     it to another worker; done; failed  [5] matched  [6] changed  [7] unreadable  [8] cursor  [9] text about its end  [10] how long
--     the hash is kept after this call, ms  [11] cap of events  [12] "1" if a call failed
--     that may have changed tasks
-- Returns {now, state, record}: "stopped" if a person has stopped it meanwhile, unless it is done. {now, "lost"} if another worker has
-- it, or it has ended: then nothing is noted. O(1).
local hash, events = KEYS[1], KEYS[2]
local id, fence, state, cap = ARGV[1], num(ARGV[3]), ARGV[4], ARGV[11]
local b = bulk(id, redis.call("HGET", hash, id))
if not b or b.turn ~= ARGV[2] or fence < b.fence or fence > b.fence and state ~= "take" then
  return { now, "lost" }
end
if state == "take" then
  if not is_open(b) then
    return { now, "lost" }
  end
  if b.state == "running" and fence > b.fence then
    b.short = "1" -- the worker before was lost, perhaps within a page
  end
  b.state, b.fence = "running", fence
else
  if b.state == state and not is_open(b) then
    return { now, state, bulk_text(b) } -- the reply to the first call was lost
  end
  if b.state == "done" or b.state == "failed" then -- a call that came late opens nothing again
    return { now, "lost" }
  end
  if b.state ~= "stopped" or state == "done" then
    b.state, b.said = state, ARGV[9]
  end
  b.matched, b.changed, b.unreadable, b.cursor = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
end
if ARGV[12] == "1" then
  b.short = "1"
end
b.at = now
local least = b.short == "1" and "true" or ""
put(hash, b, tonumber(ARGV[10]))
if b.state == "done" then
  record(events, cap, "event", "bulk done", "bulk", id, "action", b.action, "filter", b.filter, "matched", b.matched,
    "changed", b.changed, unpack(given("at_least", least, "by", b.by, "reason", b.reason)))
elseif b.state == "failed" then
  record(events, cap, "event", "bulk failed", "bulk", id, "action", b.action, "filter", b.filter, "matched", b.matched,
    "changed", b.changed, "error", b.said, unpack(given("at_least", least, "by", b.by, "reason", b.reason)))
end
return { now, b.state, bulk_text(b) }
