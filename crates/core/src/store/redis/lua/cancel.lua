#!lua flags=allow-oom
-- cancel: delayed, ready, dead -> cancelled; reserved -> a request that the settle obeys.
-- KEYS  shard
-- ARGV  locator, keep (ms), cap (tombstones)
-- Returns {state code after, 1 when a hand-over may still be under way}, or {0} unknown
local loc = ARGV[1]
local j = get(loc)
if not j then
  local tomb = tomb_get(loc)
  return {tomb and tomb.st or 0, tomb and tomb.doubt and 1 or 0}
end

if j.st == RESERVED then
  if not has(j, CANCEL_REQUESTED) then
    set(j, CANCEL_REQUESTED)
    put(loc, j)
    save()
  end
  return {RESERVED, run(j).deadline <= NOW and 1 or 0}
end

-- A push lease that ran out unsettled leaves a call that may still be on its way.
local from, unknown = j.st, run(j).lost > 0 and 1 or 0
finish(loc, j, CANCELLED, run(j).settled)
save_tombs(tonumber(ARGV[2]), tonumber(ARGV[3]))
save()
if from == DELAYED then due_remove((names(j)), loc) end
if from == DEAD then dead_remove({loc}) end
write_tally()
return {CANCELLED, unknown}
