-- purge_many: dead -> gone, many at a time, on request. Leaves no tombstones.
-- KEYS  shard
-- ARGV  per job: its time of death (6 bytes) with its locator
-- Returns how many were purged: those that were dead since then still
local PURGE = {'slot', 'dead', 'purged', 'dead_at', 'lanes', 'topics'}

function edges.purge_many(args)
  begin(PURGE)
  local entries = deaths.still(args)
  for _, loc in ipairs(deaths.locs(entries)) do
    move(lane_of(records[loc]), DEAD, nil, 1)
    drop(loc, is_external(records[loc]))
  end
  save_drops()
  deaths.remove(entries)
  count('purged', #entries)
  close()
  return #entries
end
