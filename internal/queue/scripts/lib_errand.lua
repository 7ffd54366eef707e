-- lib_errand.lua reads and writes the records of errands.

-- errand reads a record: "state turn begun at matched changed unreadable", and behind a tab each who began it, what is asked,
-- the cursor, and what is said of its end. It returns nil for one that is damaged.
local function errand(text)
  local head, by, asked, cursor, said = string.match(text or "", "^([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)\t([^\t]*)$")
  local e = { by = by, asked = asked, cursor = cursor, said = said }
  if head then
    e.state, e.turn, e.begun, e.at, e.counts = string.match(head, "^(%a+) (%d+) (%d+) (%d+) (%d+ %d+ %d+)$")
    e.turn, e.begun, e.at = num(e.turn), num(e.begun), num(e.at)
  end
  return e.turn and e.begun and e.at and e or nil
end

local function errand_text(e)
  local head = e.state .. " " .. int(e.turn) .. " " .. int(e.begun) .. " " .. int(e.at) .. " " .. e.counts
  return table.concat({ head, e.by, e.asked, e.cursor, e.said }, "\t")
end

-- is_open reports whether there is more to do, and somebody is to do it.
local function is_open(e)
  return e.state == "waiting" or e.state == "running"
end

-- errands returns all records that can be read, each with its id.
local function errands(hash)
  local list, damaged = {}, {}
  local rows = redis.call("HGETALL", hash)
  for i = 1, #rows, 2 do
    local e = errand(rows[i + 1])
    if e then
      e.id = rows[i]
      list[#list + 1] = e
    else
      damaged[#damaged + 1] = rows[i]
    end
  end
  return list, damaged
end

-- crowded says which bound another open errand would break, or nil.
local function crowded(list, by, most, most_of_one)
  local all, own = 0, 0
  for _, e in ipairs(list) do
    if is_open(e) then
      all = all + 1
      own = own + (e.by == by and 1 or 0)
    end
  end
  return all >= tonumber(most) and "all" or own >= tonumber(most_of_one) and "own" or nil
end
