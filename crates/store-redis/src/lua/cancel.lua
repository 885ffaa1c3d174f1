-- cancel: delayed, ready, dead -> cancelled; reserved -> a request that the settle obeys.
-- KEYS  shard
-- ARGV  locator, keep (ms), cap (tombstones)
-- Returns {state code after, 1 when a hand-over may still be under way}, or {0} unknown
local CANCEL = {'segment', 'segment_at', 'segment_was', 'segment_size', 'forgotten_early',
  'delayed', 'ready', 'dead', 'cancelled', 'slot', 'dead_at', 'lanes', 'topics'}

-- Takes a job out of the index of its state, and says which that was.
local function leave(loc, raw, r)
  if r and state(r) == DEAD then
    deaths.remove({deaths.entry(loc, lane_of(raw))})
    return DEAD
  end
  return unschedule(loc, raw, r) and DELAYED or READY
end

function edges.cancel(args)
  local loc = args[1]
  begin(CANCEL)
  load({loc})
  local raw, r = records[loc], runs[loc]
  if not raw then
    local tomb = tomb_get(loc)
    if not tomb then return {0, 0} end
    local st, doubt = tomb_state(tomb)
    return {st, doubt and 1 or 0}
  end

  if r and state(r) == RESERVED then
    if not is_cancel_requested(r) then
      put(loc, with_cancel(r))
      save()
    end
    return {RESERVED, deadline(r) <= NOW and 1 or 0}
  end

  -- A push lease that ran out unsettled leaves a call that may still be on its way.
  local unknown, lane = lost(r) > 0 and 1 or 0, lane_of(raw)
  events.cancelled(loc, lane)
  bury(loc, tomb_of(raw, r, CANCELLED, settled(r)), is_external(raw))
  save_tombs(tonumber(args[2]), tonumber(args[3]))
  save_drops()
  move(lane, leave(loc, raw, r), CANCELLED, 1)
  close()
  return {CANCELLED, unknown}
end
