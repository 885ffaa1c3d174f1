-- cancel: delayed, ready or dead -> cancelled. A reserved job gets a request, which its settle obeys.
-- KEYS  shard
-- ARGV  locator, keep (ms), cap (tombstones)
-- Returns {state code after, 1 when a delivery may still be in flight}, or {0, 0} unknown
local CANCEL = union(
  tombs.ADD_FIELDS, schedule.FIELDS, dead_letters.FIELDS, lanes.END_FIELDS,
  {'delayed', 'ready', 'dead', 'cancelled'}
)

-- Takes a job out of the index of its state, and returns the state's code.
local function leave_index(loc, raw, s)
  if s and state.code(s) == DEAD then
    dead_letters.remove({dead_letters.entry(loc, record.lane(raw))})
    return DEAD
  end
  return schedule.remove(loc, raw, s) and DELAYED or READY
end

function edges.cancel(args)
  local loc = args[1]
  shard.begin(CANCEL)
  local raw, s = jobs.get(loc)
  if not raw then
    local tomb = tombs.get(loc)
    if not tomb then return {0, 0} end
    local code, maybe_in_flight = tombs.state(tomb)
    return {code, maybe_in_flight and 1 or 0}
  end

  if s and state.code(s) == RESERVED then
    if not state.is_cancel_requested(s) then
      events.step(loc, record.lane(raw), RESERVED, RESERVED, 'requested')
      jobs.put(loc, state.with_cancel(s))
      jobs.save()
    end
    return {RESERVED, state.deadline(s) <= NOW and 1 or 0}
  end

  -- A push lease that ran out unsettled leaves a delivery that may still be in flight.
  local maybe_in_flight, lane = state.lost(s) > 0 and 1 or 0, record.lane(raw)
  events.cancelled(loc, lane)
  tombs.add(loc, tombs.of(raw, s, CANCELLED, state.settled(s)), record.is_external(raw))
  tombs.save(tonumber(args[2]), tonumber(args[3]))
  jobs.save_removed()
  local from = leave_index(loc, raw, s)
  events.came_from(from)
  lanes.move(lane, from, CANCELLED, 1)
  shard.close()
  return {CANCELLED, maybe_in_flight}
end
