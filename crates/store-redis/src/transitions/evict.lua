-- Evicts dead jobs once their retention is over.
-- Uses archive, carrier, dead_letters, events, lanes, order, records, shard.

-- How many times `limit` jobs are looked at if jobs that hold their keys come before others, and after how long (ms) again.
local MOST_LOOKS, LOOK_AGAIN = 10, 60000

-- Returns the first `limit` entries of expired jobs that hold no key, and whether others were passed over. Reads the jobs.
local function evictable(retention, limit)
  local found, has_held, skip = {}, false, 0
  for _ = 1, MOST_LOOKS do
    local expired = dead_letters.expired(retention, skip, limit)
    local locs = dead_letters.locs(expired)
    jobs.load(locs)
    if not order.is_used() then return expired, false end
    for i, loc in ipairs(locs) do
      local is_held = records[loc] and order.holds(loc, records[loc])
      has_held = has_held or is_held
      if not is_held and #found < limit then found[#found + 1] = expired[i] end
    end
    skip = skip + #expired
    if #expired < limit or #found == limit then break end
  end
  return found, has_held
end

-- evict: dead, and its retention is over -> gone, without a tombstone. A job that holds its key in an ordered topic stays.
--   Only for the carrier that has the shard.
-- KEYS  shard
-- ARGV  epoch, limit, longest sleep (ms), retention (ms)
-- Returns {} if another carrier has the shard, or {how many were evicted, 0, waits in us...}
function scripts.evict(args)
  shard.begin()
  if carrier.is_fenced(args[1]) then return {} end
  local retention = tonumber(args[4])
  local expired, has_held = evictable(retention, tonumber(args[2]))
  local evicted = 0
  for _, loc in ipairs(dead_letters.locs(expired)) do
    local raw, s = records[loc], states[loc]
    if raw and s and state.code(s) == DEAD then
      lanes.move(record.lane(raw), DEAD, nil, 1)
      events.step(loc, record.lane(raw), DEAD, nil)
      archive.note(archive.PURGED, loc, record.lane(raw), s)
      jobs.remove(loc, record.is_external(raw))
      evicted = evicted + 1
    end
  end
  archive.save()
  shard.count('purged', evicted)
  jobs.save_removed()
  dead_letters.remove(expired)
  -- Jobs that hold their keys stay the first, so the next look is planned as if the first had died later.
  if has_held then shard.set('dead_at', NOW - retention + LOOK_AGAIN) end
  local waits = carrier.waits(tonumber(args[3]), retention)
  shard.close()
  return {evicted, 0, unpack(waits)}
end
