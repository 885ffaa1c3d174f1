-- A shard's part of bulk operations: revive, run and reschedule of many jobs, and their progress; bulk_cancel is in
-- cancel.lua, bulk_purge in purge.lua. The calls for jobs of a filter (bulk_*) all have these arguments: the id of the
-- bulk operation (8 bytes), how long its count is kept (ms), some more, and per job its locator, the code of its state,
-- its job state or '', and its record without its payload. They return how many jobs were changed, or -1 if the bulk
-- operation is closed in this shard; and the positions, from 1, of the jobs that have changed since they were read.
-- Uses arrivals, bulks, dead_letters, due_index, events, lanes, order, ready, records, shard.

-- Makes jobs ready, due now, with the job states in `go_on`. Does not remove them from the index of their former state.
local function make_ready(found, go_on, id)
  local due = six(NOW)
  for i, job in ipairs(found) do
    ready.add(job.lane, due_index.entry(job.loc, due))
    jobs.put(job.loc, state.with_move(state.with_due(go_on[i], NOW), id, due))
    lanes.move(job.lane, job.code, READY, 1)
    events.promoted(job.loc, job.lane, job.code)
  end
  ready.save('RPUSH')
  jobs.save()
end

-- revive_many: dead -> ready, many at a time. A job stays as it is if this bulk operation has revived it before, or if
--   it is not dead since exactly the time given.
-- KEYS  shard
-- ARGV  id of the bulk operation (8 bytes), which is the token of its moves; how long its count is kept (ms);
--   then per job: its time of death (6 bytes) with its locator
-- Returns how many were revived, or -1 if the bulk operation is closed in this shard
function scripts.revive_many(args)
  shard.begin()
  order.promote_due()
  local id, progress = args[1], bulks.progress(args[1])
  if call('HEXISTS', progress, 'over') == 1 then return -1 end
  local names, entries = {}, {}
  for i = 3, #args do names[i - 2] = args[i] end
  for _, entry in ipairs(dead_letters.still_dead(names)) do
    if state.move_token(states[sub(entry, 1, 12)]) ~= id then entries[#entries + 1] = entry end
  end
  if #entries == 0 then return 0 end

  local found, go_on = {}, {}
  for i, entry in ipairs(entries) do
    local loc = sub(entry, 1, 12)
    found[i], go_on[i] = {loc = loc, lane = record.lane(records[loc]), code = DEAD}, state.revived(states[loc])
  end
  make_ready(found, go_on, id)
  dead_letters.remove(entries)
  call('HINCRBY', progress, 'revived', #entries)
  call('PEXPIRE', progress, args[2])
  shard.close()
  return #entries
end

-- bulk_progress: how many jobs of the shard a bulk operation has changed. 'close' also closes the operation in this
--   shard: it changes no more jobs here.
-- KEYS  shard
-- ARGV  id of the bulk operation (8 bytes), 'look' or 'close', how long its count is kept after 'close' (ms)
-- Returns the number
function scripts.bulk_progress(args)
  local progress = bulks.progress(args[1])
  local changed = tonumber(call('HGET', progress, 'revived') or 0)
  if args[2] == 'close' then
    call('HSET', progress, 'over', 1)
    call('PEXPIRE', progress, args[3])
  end
  return changed
end

-- versions: reads jobs as they are, for a bulk_* call that changes them if they are still the same.
-- KEYS  shard
-- ARGV  locators
-- Returns per job that has a record and whose lane has a name: {locator, code of its state, job state or '', lane name,
--   record without its payload}
function scripts.versions(args)
  shard.begin()
  jobs.load(args)
  local names, found = {}, {}
  for _, loc in ipairs(args) do
    if records[loc] then names[#names + 1] = record.lane(records[loc]) end
  end
  shard.load_rows(names)
  for _, loc in ipairs(args) do
    local raw, s = records[loc], states[loc]
    local name = raw and lanes.name(record.lane(raw))
    if name then found[#found + 1] = {loc, due_index.code(loc, raw, s), s or '', name, record.head(raw)} end
  end
  return found
end

-- bulk_run: delayed -> ready, due now.
-- KEYS  shard
-- ARGV  as above
-- Returns as above
function scripts.bulk_run(args)
  local found, changed = bulks.begin(args, 2)
  if not found then return bulks.CLOSED end
  local go_on = {}
  for i, job in ipairs(found) do go_on[i] = job.state or state.NEW end
  make_ready(found, go_on, args[1])
  for _, job in ipairs(found) do due_index.remove(job.loc, job.raw, job.state) end
  return bulks.close(args, #found, changed)
end

-- bulk_revive: dead -> ready, due now. Failures and lost leases start from zero.
-- KEYS  shard
-- ARGV  as above
-- Returns as above
function scripts.bulk_revive(args)
  local found, changed = bulks.begin(args, 2)
  if not found then return bulks.CLOSED end
  local go_on, entries = {}, {}
  for i, job in ipairs(found) do
    go_on[i], entries[i] = state.revived(job.state), dead_letters.entry(job.loc, job.lane)
  end
  make_ready(found, go_on, args[1])
  dead_letters.remove(entries)
  return bulks.close(args, #found, changed)
end

-- bulk_reschedule: delayed -> delayed at another time.
-- KEYS  shard
-- ARGV  as above, and behind how long its count is kept: due ("+ms" from now, or absolute ms)
-- Returns as above. If that time has come the jobs are made ready instead
function scripts.bulk_reschedule(args)
  local found, changed = bulks.begin(args, 3)
  if not found then return bulks.CLOSED end
  local at, left, go_on = arrivals.due_time(args[3]), {}, {}
  local due = six(at)
  for i, job in ipairs(found) do
    go_on[i] = job.state or state.NEW
    if at <= NOW or jobs.due(job.raw, job.state) ~= due then left[#left + 1] = job end
  end
  if at <= NOW then
    make_ready(found, go_on, args[1])
  else
    for i, job in ipairs(found) do
      events.step(job.loc, job.lane, DELAYED, DELAYED)
      jobs.put(job.loc, state.with_move(state.with_due(go_on[i], at), args[1], NO_TIME))
    end
    -- A job that was due at the same time keeps its entry.
    for _, job in ipairs(left) do due_index.add(job.lane, at, due_index.entry(job.loc, due)) end
    due_index.save()
    jobs.save()
  end
  for _, job in ipairs(left) do due_index.remove(job.loc, job.raw, job.state) end
  return bulks.close(args, #found, changed)
end
