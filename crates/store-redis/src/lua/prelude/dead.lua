-- Dead letters, by time of death. An entry is locator and lane, so that those of a topic are
-- told from the others without a look at their records.
local deaths = {}

function deaths.entry(loc, lane) return loc .. lane end
function deaths.locs(entries)
  local locs = {}
  for i, entry in ipairs(entries) do locs[i] = sub(entry, 1, 12) end
  return locs
end

function deaths.add(entries)
  for _, entry in ipairs(entries) do call('ZADD', KEY.dead, NOW, entry) end
  if #entries > 0 then earliest('dead_at', NOW) end
end
function deaths.first(retention, limit)
  return call('ZRANGE', KEY.dead, '-inf', NOW - retention, 'BYSCORE', 'LIMIT', 0, limit)
end
function deaths.remove(entries)
  if #entries == 0 then return end
  set('dead_at', first_score(KEY.dead, entries))
  sliced('ZREM', KEY.dead, entries)
end

-- Whether a locator comes before another, or is it. Lua would compare them by the words of a
-- language, Redis does by their bytes.
local function is_by(a, b)
  local x, y = read('>I6', a), read('>I6', b)
  return x < y or x == y and read('>I6', a, 7) <= read('>I6', b, 7)
end

-- The rank of the first entry of a time (as text, ms) or later; with a locator, of the first
-- behind that one.
function deaths.rank(at, behind)
  local low = call('ZCOUNT', KEY.dead, '-inf', '(' .. at)
  if behind == '' then return low end
  local high = low + call('ZCOUNT', KEY.dead, at, at)
  while low < high do
    local middle = floor((low + high) / 2)
    if is_by(call('ZRANGE', KEY.dead, middle, middle)[1], behind) then low = middle + 1 else high = middle end
  end
  return low
end

-- Of jobs that are named by their time of death (6 bytes) and locator: the entries of those
-- that are dead since then still.
function deaths.still(names)
  local locs, entries, found, seen = {}, {}, {}, {}
  for i, name in ipairs(names) do locs[i] = sub(name, 7) end
  load(locs)
  for i, loc in ipairs(locs) do
    local raw, r = records[loc], runs[loc]
    entries[i] = raw and r and state(r) == DEAD and deaths.entry(loc, lane_of(raw)) or loc
  end
  if #entries == 0 then return found end
  local since = call('ZMSCORE', KEY.dead, unpack(entries))
  for i, entry in ipairs(entries) do
    local is_still = #entry > 12 and since[i] and tonumber(since[i]) == read('>I6', names[i])
    if is_still and not seen[entry] then
      seen[entry] = true
      found[#found + 1] = entry
    end
  end
  return found
end
