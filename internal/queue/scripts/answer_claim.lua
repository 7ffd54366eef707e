-- answer_claim.lua lets one request of several with the same key go ahead, and gives the others its answer. It drops answers
-- that have outlived their time or their cap, at most twenty a call, which is more than a call adds.
--
-- KEYS[1] answers  hash  id -> "request r claimant until" while it runs, "request k answer" when it is answered;
--                        "" -> bytes of all of them
-- KEYS[2] answered zset  id -> when it was claimed
-- ARGV[1] id  [2] request (hash of what was asked)  [3] claimant  [4] how long the claim holds, ms  [5] how long an answer is
--     kept, ms  [6] cap of answers  [7] cap of their bytes
-- Returns {now, what}: "claimed"; "again" if an earlier claim ran out without an answer, or is the claimant's own; "running", ms it still may; "other"
-- if the key came with another request; "kept", the answer. O(log(answers)).
local answers, answered = KEYS[1], KEYS[2]
local id, request, keep = ARGV[1], ARGV[2], tonumber(ARGV[5])
local had = redis.call("HGET", answers, id)
local at = redis.call("ZSCORE", answered, id)
local what = "claimed"
if had and at and at + keep > now then
  local asked, state, rest = string.match(had, "^(%S+) (%a) (.*)$")
  if asked and asked ~= request then
    return { now, "other" }
  end
  if state == "k" then
    return { now, "kept", rest }
  end
  local claimant, till = string.match(rest or "", "^(%S+) (%d+)$")
  till = num(till)
  if till and till > now and claimant ~= ARGV[3] then -- this caller's own claim: the reply to its first call was lost
    return { now, "running", till - now }
  end
  what = "again"
end

local total = num(redis.call("HGET", answers, "")) or 0
local count, gone = redis.call("ZCARD", answered), {}
local rows = redis.call("ZRANGE", answered, 0, 19, "WITHSCORES")
for i = 1, #rows, 2 do
  if rows[i + 1] + keep > now and count < tonumber(ARGV[6]) and total <= tonumber(ARGV[7]) then
    break
  end
  if rows[i] ~= id then
    gone[#gone + 1] = rows[i]
    total = total - #(redis.call("HGET", answers, rows[i]) or "")
    count = count - 1
  end
end
local record = request .. " r " .. ARGV[3] .. " " .. int(now + tonumber(ARGV[4]))
total = math.max(total - #(had or ""), 0) + #record
redis.call("HDEL", answers, nobody) -- the undo of the next call needs the right
redis.call("HSET", answers, id, record, "", int(total))
redis.call("ZADD", answered, now, id)
redis.call("PEXPIRE", answers, keep)
redis.call("PEXPIRE", answered, keep)
remove_last("HDEL", answers, gone)
remove_last("ZREM", answered, gone)
return { now, what }
