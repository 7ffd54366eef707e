-- lib_cancel.lua: requests to cancel runs.

-- request_of returns the field of a task's request: its ID, or "t:" and its ID if the ID itself begins with "k:" or "t:".
local function request_of(task)
  return string.find(task, "^[kt]:") and "t:" .. task or task
end

-- asked reports whether a caller asked to cancel a run, by its task or by its key, after it was claimed. Value is its claim
-- in the running hash. A newer slot does not replace a run that is behind, because that run does not hold it up.
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
