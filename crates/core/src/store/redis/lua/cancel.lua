#!lua flags=allow-oom
-- cancel: delayed, ready, dead -> cancelled; reserved -> a request that the settle obeys.
-- KEYS  shard
-- ARGV  locator, keep (ms), cap (tombstones)
-- Returns {state code after, 1 when a hand-over may still be under way}, or {0} unknown
local loc, keep, cap = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local j = get(loc)
if not j then
  local tomb = tomb_get(loc)
  return {tomb and tomb.st or 0, tomb and tomb.doubt and 1 or 0}
end

-- A push lease that ran out unsettled leaves a call that may still be on its way.
local unknown = j.lost > 0 and 1 or 0
if j.st == RESERVED then
  if not has(j, CANCEL_REQUESTED) then
    set(j, CANCEL_REQUESTED)
    put(loc, j)
  end
  return {RESERVED, j.deadline <= NOW and 1 or 0}
end

local from = j.st
finish(loc, j, CANCELLED, j.settled, keep, cap)
if from == DELAYED then due_remove((names(j)), loc) end
if from == DEAD then dead_remove(loc) end
write_tally()
return {CANCELLED, unknown}
