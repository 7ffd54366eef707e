-- lib_history.lua notes what became of runs. cycle.lua, which does so most often, is given lines and reports apart.

-- note_runs adds an entry of lines, each "task word attempt claimed", to the history. What stands behind a tab in a line is what a
-- report of the run needs besides. It becomes a field of its own, "more", with a line for each, so that a release which does
-- not know it reads the others as before.
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
