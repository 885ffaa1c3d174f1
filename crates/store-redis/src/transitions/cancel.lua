-- Cancels one job (cancel), or many of a bulk operation (bulk_cancel).
-- cancel: delayed, ready or dead -> cancelled. A reserved job gets a request, which its settle obeys.
-- KEYS  shard
-- ARGV  locator, keep (ms), cap (tombstones)
-- Returns {code of the state afterwards, 1 if a delivery may still be in flight, else 0}; {0, 0} if there is no such job
-- Uses archive, bulks, dead_letters, due_index, events, lanes, ready, records, shard, tombs.

-- Removes a job from the index of its state: dead, delayed or ready.
local function leave_index(code, loc, raw, s)
  local lane = record.lane(raw)
  if code == DEAD then
    dead_letters.remove({dead_letters.entry(loc, lane)})
  elseif code == DELAYED then
    due_index.remove(loc, raw, s)
  else
    ready.clean(lane, 1)
  end
end

-- Records in a reserved job's state that it is to be cancelled, and publishes that. Returns false if that was requested before.
local function request(loc, lane, s)
  if state.is_cancel_requested(s) then return false end
  events.step(loc, lane, RESERVED, RESERVED, 'requested')
  jobs.put(loc, state.with_cancel(s))
  publish(string.format('cancel %08x%08x%08x', read('>I4I4I4', loc)))
  return true
end

-- Ends a job that is not reserved: puts its tombstone in its place. Its index entry stays; the caller removes it.
local function cancel(loc, raw, s, lane, code)
  events.cancelled(loc, lane, code)
  archive.note(archive.CANCELLED, loc, lane, s)
  tombs.add(loc, tombs.of(raw, s, CANCELLED, state.settled(s)), record.is_external(raw))
  lanes.move(lane, code, CANCELLED, 1)
end

function scripts.cancel(args)
  local loc = args[1]
  shard.begin()
  local raw, s, tomb = tombs.find(loc)
  if not raw then
    if not tomb then return {0, 0} end
    local code, maybe_in_flight = tombs.state(tomb)
    return {code, maybe_in_flight and 1 or 0}
  end

  local lane, from = record.lane(raw), due_index.code(loc, raw, s)
  if from == RESERVED then
    if request(loc, lane, s) then jobs.save() end
    return {RESERVED, state.deadline(s) <= NOW and 1 or 0}
  end

  -- A push lease that ran out unsettled leaves a delivery that may still be in flight.
  local maybe_in_flight = state.maybe_in_flight(s) and 1 or 0
  -- The keys of the queue are touched before the first write.
  if from == READY then ready.length(lane) end
  cancel(loc, raw, s, lane, from)
  archive.save()
  tombs.save(tonumber(args[2]), tonumber(args[3]))
  jobs.save_removed()
  leave_index(from, loc, raw, s)
  shard.close()
  return {CANCELLED, maybe_in_flight}
end

-- bulk_cancel: cancel of many jobs that are still as a bulk operation has found them.
-- KEYS  shard
-- ARGV  as those of bulk_run, and behind how long its count is kept: keep (ms), cap (tombstones)
-- Returns as bulk_run
function scripts.bulk_cancel(args)
  local found, changed = bulks.begin(args, 4)
  if not found then return bulks.CLOSED end
  local n, ended, unqueued, dead = 0, {}, {}, {}
  for _, job in ipairs(found) do
    local loc, raw, s, lane, code = job.loc, job.raw, job.state, job.lane, job.code
    if code == READY then
      -- The keys of the queue are touched before the first write.
      if not unqueued[lane] then ready.length(lane) end
      unqueued[lane] = (unqueued[lane] or 0) + 1
    elseif code == DEAD then
      dead[#dead + 1] = dead_letters.entry(loc, lane)
    end
    if code ~= RESERVED then
      cancel(loc, raw, s, lane, code)
      ended[#ended + 1], n = job, n + 1
    elseif request(loc, lane, s) then
      n = n + 1
    end
  end
  archive.save()
  tombs.save(tonumber(args[3]), tonumber(args[4]))
  jobs.save()
  jobs.save_removed()
  dead_letters.remove(dead)
  for _, job in ipairs(ended) do
    if job.code == DELAYED then due_index.remove(job.loc, job.raw, job.state) end
  end
  for lane, count in pairs(unqueued) do ready.clean(lane, count) end
  return bulks.close(args, n, changed)
end
