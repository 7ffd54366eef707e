-- state.lua moves an instance to ready (it joins the contest) or draining (it resigns), and elects in the same step:
-- there is no moment in which nobody leads while somebody could, and none in which an older one still takes work.
--
-- KEYS[1..13] see lib_elect.lua
-- ARGV[1] id  [2] generation  [3] state: r or d. Who drains stays draining: a late "ready" changes nothing.
-- Returns view. Errors: FENCED. O(instances).
local id = ARGV[1]
local alive, member = live(instances, members, id, ARGV[2])
if not alive then
  return redis.error_reply("FENCED instance " .. id)
end
sweep()
local m = parse(member)
if m.state ~= ARGV[3] and m.state ~= "d" then
  m.state = ARGV[3]
  redis.call("HSET", members, id, pack(m))
  record(events, cap_events, "event", ARGV[3] == "r" and "ready" or "draining", "instance", id, "release", m.release)
  if m.state == "d" then
    unwatch(id) -- a wake-up for it would wake nobody
  end
  elect()
end
return view()
