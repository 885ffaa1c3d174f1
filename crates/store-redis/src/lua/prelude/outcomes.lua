-- Outcomes: what a lease's word does to its job. An outcome is kind, 1 when the payload is
-- external, delay (6 bytes, ms), and the failed attempt with its reason as a run ends with them.
local COMPLETE, RETRY, BURY = 1, 2, 3
local APPLIED, REPLAYED, LATE, STALE = 1, 2, 3, 4

local function outcome_delay(o) return (read('>I6', o, 3)) end

local function ends(loc, tomb, r, st, external, lane)
  local marked = lost(r) > 0 and st + DOUBT or st
  bury(loc, marked == DONE and tomb or char(marked) .. sub(tomb, 2), external)
  move(lane, RESERVED, st, 1)
end

local function goes_on(loc, r, st, lane, lease)
  move(lane, RESERVED, st, 1)
  put(loc, with_settled(r, st == READY and DELAYED or st, lease))
end

local function later(loc, r, o, lane, lease)
  local at = NOW_UP + outcome_delay(o)
  schedule(lane, at, entry_of(loc, six(at)))
  goes_on(loc, with_due(r, at), DELAYED, lane, lease)
end

-- A current outcome. The due time that the lease was given for is told by the tombstone.
local function apply(loc, tomb, o, lane, lease, dead)
  local r, kind, external = runs[loc], byte(o), byte(o, 2) == 1
  events.settled(loc, lane, r, o)
  if kind == COMPLETE then
    ends(loc, tomb, r, DONE, external, lane)
  elseif is_cancel_requested(r) then
    ends(loc, tomb, r, CANCELLED, external, lane)
  elseif kind == RETRY then
    later(loc, with_failure(r, sub(o, 9)), o, lane, lease)
  elseif kind == BURY then
    dead[#dead + 1] = deaths.entry(loc, lane)
    goes_on(loc, with_failure(r, sub(o, 9)), DEAD, lane, lease)
  elseif outcome_delay(o) > 0 then
    later(loc, r, o, lane, lease)
  else
    append(ready_for, lane, entry_of(loc, sub(tomb, 10, 15)))
    goes_on(loc, r, READY, lane, lease)
  end
  return APPLIED
end

-- A receipt that is no longer current: only a success still counts, and only for this
-- very job (a lease older than the record belongs to an earlier job of the same id). What it is to be
-- taken out of comes into `undead` and `undelayed`.
local function overdue(loc, is_complete, lease, undead, undelayed)
  load({loc})
  local raw, r = records[loc], runs[loc]
  if not (raw and r) then return STALE end
  local st = state_of(loc, raw, r)
  local over = st == DEAD and reason(r) ~= 'lost'
  if not is_complete or over or read('>I8', lease) < read('>I6', raw, 7) * 1000 then return STALE end
  if st == DEAD then undead[#undead + 1] = deaths.entry(loc, lane_of(raw)) end
  if st == DELAYED then undelayed[#undelayed + 1] = {loc, raw, r} end
  move(lane_of(raw), st, DONE, 1)
  events.done(loc, lane_of(raw))
  bury(loc, tomb_of(raw, r, DONE, lease), is_external(raw))
  return LATE
end
