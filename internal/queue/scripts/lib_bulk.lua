-- lib_bulk.lua reads and writes the records of bulk actions. Each is worked on by a task of the type onbeat.bulk.

-- bulk reads a record: "state action turn fence begun at about matched changed unreadable
-- short" (short: 1 if the counts may lack what a call changed whose answer nobody got), and behind a tab each who began it, the
-- filter, the cursor, a text about its end and, if there is one, the reason. It returns nil for a record that is damaged.
local function bulk(id, text)
  local head, by, filter, cursor, said, reason =
    string.match(text or "", "^([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t?([^\t]*)$")
  local b = { id = id, by = by, filter = filter, cursor = cursor, said = said, reason = reason }
  if head then
    local fence, begun, at
    b.state, b.action, b.turn, fence, begun, at, b.about, b.matched, b.changed, b.unreadable, b.short =
      string.match(head, "^(%a+) (%S+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ([01])$")
    b.fence, b.begun, b.at = num(fence), num(begun), num(at)
  end
  return b.fence and b.begun and b.at and b or nil
end

local function bulk_text(b)
  local head = { b.state, b.action, b.turn, int(b.fence), int(b.begun), int(b.at), b.about, b.matched, b.changed, b.unreadable,
    b.short }
  return table.concat({ table.concat(head, " "), b.by, b.filter, b.cursor, b.said, b.reason ~= "" and b.reason or nil }, "\t")
end

-- put writes a record, and keeps the hash for a while longer.
local function put(hash, b, kept)
  redis.call("HDEL", hash, nobody) -- passes at maxmemory, and then so does the rest
  redis.call("HSET", hash, b.id, bulk_text(b))
  redis.call("PEXPIRE", hash, kept)
end

-- is_open reports whether there is more to do.
local function is_open(b)
  return b.state == "waiting" or b.state == "running"
end
