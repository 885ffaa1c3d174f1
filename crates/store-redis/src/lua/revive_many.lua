-- revive_many: dead -> ready, many at a time, for a revival. What it has revived before, and what
-- is not dead since then still, is left as it is.
-- KEYS  shard
-- ARGV  id of the revival (8 bytes), which is the token of its moves; how long this is kept (ms);
--   then per job: its time of death (6 bytes) with its locator
-- Returns how many were revived, or -1 when the revival is over here
function edges.revive_many(args)
  begin(moves.fields)
  local id, progress = args[1], revivals.of_shard(args[1])
  if call('HEXISTS', progress, 'over') == 1 then return -1 end
  local names, entries = {}, {}
  for i = 3, #args do names[i - 2] = args[i] end
  for _, entry in ipairs(deaths.still(names)) do
    local loc = sub(entry, 1, 12)
    if sub(mark(runs[loc]), 1, 8) ~= id then entries[#entries + 1] = entry end
  end
  if #entries == 0 then return 0 end

  local due = six(NOW)
  for _, entry in ipairs(entries) do
    local loc = sub(entry, 1, 12)
    append(ready_for, lane_of(records[loc]), entry_of(loc, due))
    put(loc, moves.marked(with_due(moves.revived(runs[loc]), NOW), id, due))
    move(lane_of(records[loc]), DEAD, READY, 1)
    events.promoted(loc, lane_of(records[loc]))
  end
  save_ready('RPUSH')
  wake_takers()
  save()
  deaths.remove(entries)
  call('HINCRBY', progress, 'revived', #entries)
  call('PEXPIRE', progress, args[2])
  close()
  return #entries
end
