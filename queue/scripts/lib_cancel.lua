-- lib_cancel.lua: requests to cancel runs.

-- request_of is the field of a task's request. One whose ID looks like the field of a key, or like this, gets another.
local function request_of(task)
  return string.find(task, "^[kt]:") and "t:" .. task or task
end

-- asked reports whether somebody asked for a run to be cancelled, by its task or its key, after it was claimed with this
-- value in the running hash. A run that is behind holds up no newer slot, so it is not replaced by one.
local function asked(cancel, task, value)
  local key = string.match(value, "\31k:([^\31]+)")
  local fence = tonumber(string.match(value, "^%d+"))
  for i, request in ipairs(redis.call("HMGET", cancel, request_of(task), key and "k:" .. key or request_of(task))) do
    local upto, reason = string.match(request or "", "^(%d+) %d+ ?(.*)$")
    local spared = i == 2 and reason == "replaced" and string.find(value, "\31b:", 1, true)
    if upto and fence <= tonumber(upto) and not spared then
      return true
    end
  end
  return false
end
