-- answer_settle.lua keeps the answer of a request, or gives up its claim. It does nothing if the claim is not the caller's
-- any more.
--
-- KEYS[1] answers hash, KEYS[2] answered zset: see answer_claim.lua
-- ARGV[1] id  [2] request  [3] claimant  [4] answer, or "" to give up the claim  [5] how long an answer is kept, ms
-- Returns {now, 1 if the claim was the caller's, else 0}. O(log(answers)).
local answers, answered, id = KEYS[1], KEYS[2], ARGV[1]
local had = redis.call("HGET", answers, id)
local mine = ARGV[2] .. " r " .. ARGV[3] .. " "
if not had or string.sub(had, 1, #mine) ~= mine then
  return { now, 0 }
end
redis.call("HDEL", answers, nobody) -- passes at maxmemory, and then so does the rest
local total = (num(redis.call("HGET", answers, "")) or 0) - #had
if ARGV[4] == "" then
  redis.call("HSET", answers, "", int(math.max(total, 0)))
  remove_last("HDEL", answers, { id })
  remove_last("ZREM", answered, { id })
  return { now, 1 }
end
local record = ARGV[2] .. " k " .. ARGV[4]
redis.call("HSET", answers, id, record, "", int(math.max(total, 0) + #record))
redis.call("PEXPIRE", answers, ARGV[5])
return { now, 1 }
