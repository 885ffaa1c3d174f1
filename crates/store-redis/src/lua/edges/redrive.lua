-- A shard's part of a redrive.

-- redrive_jobs: dead -> ready, many at a time. A job stays as it is if this redrive has revived it before, or if
--   it is no longer dead since the time given.
-- KEYS  shard
-- ARGV  id of the redrive (8 bytes), which is the token of its moves; how long its count is kept (ms);
--   then per job: its time of death (6 bytes) with its locator
-- Returns how many were revived, or -1 if the redrive is closed in this shard
function edges.redrive_jobs(args)
  shard.begin(moves.FIELDS)
  local id, progress = args[1], redrives.progress(args[1])
  if call('HEXISTS', progress, 'over') == 1 then return -1 end
  local names, entries = {}, {}
  for i = 3, #args do names[i - 2] = args[i] end
  for _, entry in ipairs(dead_letters.still_dead(names)) do
    if state.move_token(states[sub(entry, 1, 12)]) ~= id then entries[#entries + 1] = entry end
  end
  if #entries == 0 then return 0 end

  local due_six = six(NOW)
  for _, entry in ipairs(entries) do
    local loc = sub(entry, 1, 12)
    local lane = record.lane(records[loc])
    ready.add(lane, schedule.entry(loc, due_six))
    jobs.put(loc, state.with_move(state.with_due(state.revived(states[loc]), NOW), id, due_six))
    lanes.move(lane, DEAD, READY, 1)
    events.promoted(loc, lane, DEAD)
  end
  ready.save('RPUSH')
  jobs.save()
  dead_letters.remove(entries)
  call('HINCRBY', progress, 'revived', #entries)
  call('PEXPIRE', progress, args[2])
  shard.close()
  return #entries
end

-- redrive_progress: how many jobs of the shard a redrive has revived. 'close' also closes it in this shard: it
--   revives no more jobs here.
-- KEYS  shard
-- ARGV  id of the redrive (8 bytes), 'look' or 'close', how long its count is kept (ms)
-- Returns the number
function edges.redrive_progress(args)
  local progress = redrives.progress(args[1])
  local revived = tonumber(call('HGET', progress, 'revived') or 0)
  if args[2] == 'close' then
    call('HSET', progress, 'over', 1)
    call('PEXPIRE', progress, args[3])
  end
  return revived
end
