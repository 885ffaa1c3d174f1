-- evict: dead, and its retention is over -> gone, without a tombstone. Only for the carrier that has the shard.
-- KEYS  shard
-- ARGV  epoch, limit, longest sleep (ms), retention (ms)
-- Returns {} if another carrier has the shard, or {how many were evicted, 0, waits in us...}
-- Uses archive, carrier, dead_letters, events, lanes, records, shard.

function scripts.evict(args)
  shard.begin()
  if carrier.is_fenced(args[1]) then return {} end
  local expired = dead_letters.expired(tonumber(args[4]), tonumber(args[2]))
  local evicted = 0
  local locs = dead_letters.locs(expired)
  jobs.load(locs)
  for _, loc in ipairs(locs) do
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
  local waits = carrier.waits(tonumber(args[3]), tonumber(args[4]))
  shard.close()
  return {evicted, 0, unpack(waits)}
end
