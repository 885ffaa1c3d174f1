-- Dead letters: the sorted set of dead jobs by time of death, and its pages. An entry is locator and lane, so that the
-- dead jobs of a topic are found without reading records. A page ends with ROUGH bytes of a locator: they reveal little
-- of a job, and still tell apart most jobs that died in the same ms.
-- Uses order, records, shard.
local dead_letters = {ROUGH = 2}

function dead_letters.entry(loc, lane) return loc .. lane end
function dead_letters.locs(entries)
  local locs = {}
  for i, entry in ipairs(entries) do locs[i] = sub(entry, 1, 12) end
  return locs
end

function dead_letters.add(entries)
  for _, entry in ipairs(entries) do
    call('ZADD', KEY.dead, NOW, entry)
    if order.is_used() then order.note_death(sub(entry, 1, 12), sub(entry, 13)) end
  end
  if #entries > 0 then shard.earliest('dead_at', NOW) end
end
-- Returns the first `limit` entries of jobs that died at least `retention` ms ago, after the first `skip`.
function dead_letters.expired(retention, skip, limit)
  return call('ZRANGE', KEY.dead, '-inf', NOW - retention, 'BYSCORE', 'LIMIT', skip, limit)
end
function dead_letters.remove(entries)
  if #entries == 0 then return end
  shard.set('dead_at', first_score(KEY.dead, entries))
  sliced('ZREM', KEY.dead, entries)
end

-- Whether the locator that begins `a` is not after that of `b` in Redis's byte order. Lua's `<` follows the locale.
local function is_by(a, b)
  local x, y = read('>I6', a), read('>I6', b)
  return x < y or x == y and read('>I6', a, 7) <= read('>I6', b, 7)
end

-- Returns the rank of the first entry from a time (ms, as text) on, or after the locator `behind` there if not ''.
function dead_letters.rank(at, behind)
  local low = call('ZCOUNT', KEY.dead, '-inf', '(' .. at)
  if behind == '' then return low end
  local high = low + call('ZCOUNT', KEY.dead, at, at)
  while low < high do
    local middle = floor((low + high) / 2)
    if is_by(call('ZRANGE', KEY.dead, middle, middle)[1], behind) then low = middle + 1 else high = middle end
  end
  return low
end

-- Returns the place after an entry: its score as a time (6 bytes) and the begin of its locator.
local function place_after(entry, score) return six(tonumber(score)) .. sub(entry, 1, dead_letters.ROUGH) end

-- Returns a page of the dead jobs from the place `at` on ('0' is the start): their locators, and where the next page
-- begins ('0' is the end). The page has `count` jobs, and further ones that have the same place as the last.
function dead_letters.page(at, count)
  local rank = 0
  if at ~= '0' then
    local place = bytes_of(at)
    rank = dead_letters.rank(read('>I6', place), sub(place, 7) .. string.rep('\255', 12 - dead_letters.ROUGH))
  end
  local entries = call('ZRANGE', KEY.dead, rank, rank + count - 1, 'WITHSCORES')
  local n = #entries
  local place, following = n > 0 and place_after(entries[n - 1], entries[n])
  while n > 0 do
    following = call('ZRANGE', KEY.dead, rank + n / 2, rank + n / 2, 'WITHSCORES')
    if #following == 0 or place_after(following[1], following[2]) ~= place then break end
    entries[n + 1], entries[n + 2], n = following[1], following[2], n + 2
  end
  local locs = {}
  for i = 1, n, 2 do locs[#locs + 1] = sub(entries[i], 1, 12) end
  if n == 0 or #following == 0 then return locs, '0' end
  return locs, place_of(place)
end

-- Reads jobs named by time of death (6 bytes) and locator. Returns the entries of those still dead since, each once.
function dead_letters.still_dead(names)
  local locs, entries, found, seen = {}, {}, {}, {}
  for i, name in ipairs(names) do locs[i] = sub(name, 7) end
  jobs.load(locs)
  for i, loc in ipairs(locs) do
    local raw, s = records[loc], states[loc]
    entries[i] = raw and s and state.code(s) == DEAD and dead_letters.entry(loc, record.lane(raw)) or loc
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
