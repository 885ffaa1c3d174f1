-- purge: dead -> gone, on request. Leaves no tombstone.
-- KEYS  shard
-- ARGV  locator
-- Returns {200, state, run, record's start} as it was; {409, state, run or '', record's start}
--   or {409, tombstone} where it is not dead; {} unknown
local PURGE = {'segment', 'slot', 'dead', 'purged', 'dead_at', 'lanes', 'topics'}

function edges.purge(args)
  begin(PURGE)
  local loc = args[1]
  local raw, r, st, answer = moves.look(loc)
  if not raw then return answer end
  if st ~= DEAD then return moves.left(loc, st, false) end
  drop(loc, is_external(raw))
  save_drops()
  deaths.remove({deaths.entry(loc, lane_of(raw))})
  move(lane_of(raw), DEAD, nil, 1)
  count('purged', 1)
  close()
  return described(200, st, raw, r)
end
