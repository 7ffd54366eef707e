-- lib_history.lua adds runs to the history. cycle.lua, which does so most often, is given lines, reports and facts apart.

-- note_runs adds an entry to the history, with a line for each run: "task word attempt claimed". Text after a tab in a line
-- is what a report of the run needs besides, and after another tab what an archive is told. They go into fields of their own,
-- "more" and "facts", with a line for each run. A note that begins with a tab is of a task that no schedule made: it goes into the stream runs, in the same way.
local function note_runs(history, runs, cap, notes, ...)
  local function add(stream, field, from, ...)
    local lines, more, facts = {}, {}, {}
    for _, note in ipairs(notes) do
      local tab, line, report, fact = string.match(note, "^(\t?)([^\t]*)\t?([^\t]*)\t?(.*)$")
      if tab == from then
        lines[#lines + 1], more[#more + 1], facts[#facts + 1] = line, report, fact
      end
    end
    local function joined(list)
      local text = table.concat(list, "\n")
      return string.find(text, "[^\n]") and text or ""
    end
    if #lines > 0 then
      record(stream, cap, unpack(given(field, table.concat(lines, "\n"), "more", joined(more), "facts", joined(facts), ...)))
    end
    return #lines > 0
  end
  add(history, "runs", "", ...)
  if add(runs, "tasks", "\t", ...) then
    redis.pcall("PEXPIRE", runs, 2592000000) -- a month: nothing else removes what no archive reads any more
  end
end
