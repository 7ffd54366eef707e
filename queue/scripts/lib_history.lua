-- lib_history.lua adds runs to the history. cycle.lua, which does so most often, is given lines and reports apart.

-- note_runs adds an entry to the history, with a line for each run: "task word attempt claimed". Text after a tab in a line
-- is what a report of the run needs besides. It goes into a field of its own, "more", with a line for each run, so that an
-- older release, which does not know the field, reads the lines as before.
local function note_runs(history, cap, notes, ...)
  local text = table.concat(notes, "\n")
  if not string.find(text, "\t", 1, true) then
    return record(history, cap, "runs", text, ...)
  end
  local lines, more = {}, {}
  for line in string.gmatch(text, "[^\n]+") do
    local tab = string.find(line, "\t", 1, true) or #line + 1
    lines[#lines + 1], more[#more + 1] = string.sub(line, 1, tab - 1), string.sub(line, tab + 1)
  end
  record(history, cap, "runs", table.concat(lines, "\n"), "more", table.concat(more, "\n"), ...)
end
