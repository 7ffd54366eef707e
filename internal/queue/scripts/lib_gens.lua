-- lib_gens.lua: for scripts that look at the runs of all instances. A script must declare its keys, so the caller passes the
-- running hashes of the generations that it knows.

-- others reports whether there is a generation, of a member or of a lost instance, besides the n that ARGV names from at
-- on. It ignores an entry that cannot be read: no running hash is known for it.
local function others(members, orphans, at, n)
  local named = {}
  for i = at, at + n - 1 do
    named[ARGV[i]] = true
  end
  local there = redis.call("ZRANGE", orphans, 0, -1)
  for _, member in ipairs(redis.call("HVALS", members)) do
    there[#there + 1] = string.match(member, "^(%d+) ")
  end
  for _, gen in ipairs(there) do
    if num(gen) and not named[gen] then
      return true
    end
  end
  return false
end
