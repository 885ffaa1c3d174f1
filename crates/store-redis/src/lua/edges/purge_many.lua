-- purge_many: dead -> gone, many at a time, on request. Leaves no tombstones.
-- KEYS  shard
-- ARGV  per job: its time of death (6 bytes) with its locator
-- Returns how many were purged: those that are still dead since the time given
local PURGE = union(dead_letters.FIELDS, lanes.END_FIELDS, {'dead', 'purged'})

function edges.purge_many(args)
  shard.begin(PURGE)
  local entries = dead_letters.still_dead(args)
  for _, loc in ipairs(dead_letters.locs(entries)) do
    lanes.move(record.lane(records[loc]), DEAD, nil, 1)
    jobs.remove(loc, record.is_external(records[loc]))
  end
  jobs.save_removed()
  dead_letters.remove(entries)
  shard.count('purged', #entries)
  shard.close()
  return #entries
end
