-- purge: dead -> gone, on request. Leaves no tombstone.
-- KEYS  shard
-- ARGV  locator
-- Returns {200, state, job state, record's start} as it was; {409, state, job state or '', record's start}
--   or {409, tombstone} where it is not dead; {} unknown
local PURGE = union(
  tombs.FIELDS, schedule.FIELDS, dead_letters.FIELDS, lanes.END_FIELDS, {'dead', 'purged'}
)

function edges.purge(args)
  shard.begin(PURGE)
  local loc = args[1]
  local raw, s, code, answer = moves.look(loc)
  if not raw then return answer end
  if code ~= DEAD then return moves.unchanged(loc, code, false) end
  jobs.remove(loc, record.is_external(raw))
  jobs.save_removed()
  dead_letters.remove({dead_letters.entry(loc, record.lane(raw))})
  lanes.move(record.lane(raw), DEAD, nil, 1)
  shard.count('purged', 1)
  shard.close()
  return jobs.described(200, code, raw, s)
end
