-- Purges: dead -> gone, on request, of one job or of many. They leave no tombstones. evict.lua does so by retention.
-- Uses archive, bulks, dead_letters, events, lanes, moves, records, shard.

-- Removes dead jobs, whose records must have been loaded. Leaves `shard.close` to the caller.
local function purge(entries)
  for _, loc in ipairs(dead_letters.locs(entries)) do
    local raw = records[loc]
    lanes.move(record.lane(raw), DEAD, nil, 1)
    events.step(loc, record.lane(raw), DEAD, nil)
    archive.note(archive.PURGED, loc, record.lane(raw), states[loc])
    jobs.remove(loc, record.is_external(raw))
  end
  archive.save()
  shard.count('purged', #entries)
  jobs.save_removed()
  dead_letters.remove(entries)
end

-- purge: removes one dead job.
-- KEYS  shard
-- ARGV  locator
-- Returns {200, state, job state, record's start} as they were; {409, state, job state or '', record's start} if it is
--   not dead, {409, tombstone} if it has ended; {} if there is no such job
function scripts.purge(args)
  shard.begin()
  local loc = args[1]
  local raw, s, code, answer = moves.look(loc)
  if not raw then return answer end
  if code ~= DEAD then return moves.unchanged(loc, code, false) end
  purge({dead_letters.entry(loc, record.lane(raw))})
  shard.close()
  return jobs.described(200, code, raw, s)
end

-- purge_many: removes those of many jobs that are still dead since exactly the time given.
-- KEYS  shard
-- ARGV  per job: its time of death (6 bytes) with its locator
-- Returns how many were removed
function scripts.purge_many(args)
  shard.begin()
  local entries = dead_letters.still_dead(args)
  purge(entries)
  shard.close()
  return #entries
end

-- bulk_purge: removes those of many dead jobs that are still as a bulk operation has read them.
-- KEYS  shard
-- ARGV  as those of bulk_run
-- Returns as bulk_run
function scripts.bulk_purge(args)
  local found, changed = bulks.begin(args, 2)
  if not found then return bulks.CLOSED end
  local entries = {}
  for i, job in ipairs(found) do entries[i] = dead_letters.entry(job.loc, job.lane) end
  purge(entries)
  return bulks.close(args, #entries, changed)
end
