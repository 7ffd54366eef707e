-- lib_gens.lua: scripts that look at what all instances run. They are called with the running hashes of the generations that
-- the caller knows, because a script names all its keys.

-- others says whether there is a generation, of a member or of a lost instance, besides the n that ARGV names from at on.
-- An entry that cannot be read runs nothing that is known.
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
