-- cycle.lua settles a batch of runs that ended and claims due tasks, in one step. This part checks the caller and reads
-- the arguments. cycle_settle.lua, cycle_crowd.lua and cycle_claim.lua follow; the last one claims and replies.
--
-- KEYS[1]  instances  zset    id -> lease end (unix ms)
-- KEYS[2]  members    hash    id -> "generation order state ..."
-- KEYS[3]  leader     hash    id, gen, order, consume, open, pause
-- KEYS[4]  meta       hash    fence, lanes, counters
-- KEYS[5]  watch      zset    see lib_wake.lua: which instances will look again, and when
-- KEYS[6]  tasks      hash    task -> record
-- KEYS[7]  running    hash    of this generation: task -> "fence claimed due <1f>limit..", "" -> last seq, with zeros
-- KEYS[8]  done       zset    task -> end of keeping
-- KEYS[9]  dead       zset    task -> when it died
-- KEYS[10] history    stream  what became of the slots of schedules
-- KEYS[11] active     hash    "k:key", "b:key" (only runs that are behind) or "t:type" -> how many run
-- KEYS[12] held       zset    see lib_held.lua
-- KEYS[13] cancel     hash    task, "t:task" or "k:key" -> "fence asked-at reason"
-- KEYS[14] lanes      hash    lane -> last seen in use (unix ms)
-- KEYS[15] events     stream
-- KEYS[16..] due sets, one for each lane, in the order in which the script reads them; behind them, if there is an archive:
--     runs    stream  runs of tasks that no schedule made
--
-- ARGV[1] id  [2] generation  [3] seq: larger than in every earlier call of this generation
-- ARGV[4] want: most tasks to claim  [5] cap of history, and of events  [6] cap of dead  [7] cap of done  [8] wake channel
-- ARGV[9] a name for the lanes that the caller reads: instances with the same name read the same lanes
-- ARGV[10] the version of the list of lanes that the caller knows: claim nothing if it is another; 0: claim anyway
-- ARGV[11] keys, joined by <1f>: an earlier call left tasks that wait for them in lanes that it did not declare
-- ARGV[12] the release of the instance, for the history
-- ARGV[13] most tasks of the dispatcher's own to claim besides, and of these most bulk actions, which last: as "2 1"
-- ARGV[14] workers of the caller for tasks of users (0: any number), then each schedule that has taken more than an eighth of
--     them, and how many: as "8", or "8<1f>name<1f>3"; see cycle_crowd.lua
-- ARGV[15] n lanes, then for each: its group (lanes of one group share; "-1": of the dispatcher's own, "-2": of bulk actions),
--     most to run at once (0: no limit, -1: claim nothing here), its name
-- then n settled, the end if there are none; how many finished, kept, moved and died; their ids, in that order; n series
-- of settled with one fence, then for each: the fence, how many; then
--   for each kept: ms to keep, record
--   for each moved: lane, due ("+ms" from now), record ("" leaves it)
--   for each that died: record
--   n notes; if there are any: their numbers among the settled, joined by ",", and their lines for the history, and what a
--     report needs besides, each joined by newlines; then, if there is an archive, the facts of these runs for it, joined
--     too ("" if there are none), and the same again for the stream runs: n notes, places, lines, reports, facts
--
-- Returns {now in microseconds, next due or -1, flags, lanes version, fence, void indexes joined by ",", skipped,
--   refused indexes joined by ",": a caller asked to cancel these tasks that were to be moved, so the claims stay, to be
--   settled as cancelled; keys, joined by <1f>, that have room while tasks wait for them in lanes that were not declared;
--   then for each lane that gave tasks, and each time it did: its number, how many, the lengths of their ids, the ids, their
--   due times, the lengths of their records, the records. Lengths and times are series, joined by ",": "20*3" is 20 for
--   three tasks in a row, and "20" is for one}.
-- flags: 1 may claim, 2 watches next due, 4 due work left behind (or not looked for: the list of lanes has changed).
-- Errors: FENCED (not registered, or the lease ran out), STALE seq (this call, or a later one, ran before).
--
-- O(batch * log(due)). At maxmemory Redis refuses a script's first write if that may take memory, and only the first. So
-- the first write is the ZREM: settling, which frees memory, must always pass.
local instances, members, leader, meta, watch, tasks, running = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local done, dead, history, active, held, cancel = KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12], KEYS[13]
local lanes_hash, events, first_lane = KEYS[14], KEYS[15], 15
local id, gen, seq, want, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[8]
local reads, known = ARGV[9], ARGV[10]
local me = reads == "" and id or id .. "\31" .. reads
want = math.min(want, chunk)
local own_left, bulk_left = string.match(ARGV[13], "(%d+) (%d+)") -- how many of the dispatcher's own are still wanted
own_left, bulk_left = tonumber(own_left), tonumber(bulk_left)

local alive, member = live(instances, members, id, gen)
if not alive then
  return redis.error_reply("FENCED instance " .. id)
end
local last_seq = num(redis.call("HGET", running, "")) or 0
if seq <= last_seq then
  return redis.error_reply("STALE " .. int(last_seq))
end
redis.call("ZREM", watch, me)
-- The undos need ZADD and HDEL. Try both first: a user without the rights is refused before the script changes anything.
redis.call("ZADD", watch, "XX", 0, nobody)
try_removal("HDEL", tasks)
-- Redis keeps a hash of few short values as a list, and reads half of it on average for each look. One long value, here
-- the seq with zeros, makes it a table from the start.
redis.call("HSET", running, "", string.format("%065.0f", seq))

local at = 15
local function arg()
  at = at + 1
  return ARGV[at - 1]
end

local lanes = {}
for i = 1, tonumber(arg()) do
  lanes[i] = { key = KEYS[first_lane + i], number = i, group = arg(), limit = tonumber(arg()), name = arg() }
  lanes[i].own = lanes[i].group == "-1" or lanes[i].group == "-2"
end

local notes, more, facts = {}, {}, {} -- for the history, line by line; see lib_history.lua
local runs = KEYS[first_lane + #lanes + 1] -- nil without an archive
local others = runs and { {}, {}, {} } -- the same for the stream runs
local counters, rises = {}, {} -- the counters of meta as they are; the fields and values to write
for i, value in ipairs(redis.call("HMGET", meta, "fence", "lanes", "done", "retried", "died")) do
  counters[({ "fence", "lanes", "done", "retried", "died" })[i]] = value
end
