#!lua flags=allow-oom
-- cancel: delayed, ready, dead -> cancelled; reserved -> a request that the settle obeys.
-- KEYS  shard
-- ARGV  locator, keep (ms), cap (tombstones)
-- Returns {state code after, 1 when a hand-over may still be under way}, or {0} unknown
open('segment', 'segment_at', 'segment_was', 'segment_size', 'forgotten_early',
  'delayed', 'ready', 'dead', 'cancelled')
local loc = ARGV[1]
load({loc})
local h = heads[loc]
if not h then
  local tomb = tomb_get(loc)
  if not tomb then return {0, 0} end
  local st, doubt = tomb_state(tomb)
  return {st, doubt and 1 or 0}
end

if state(h) == RESERVED then
  if not has(h, CANCEL_REQUESTED) then
    put(loc, with_cancel(h))
    save()
  end
  return {RESERVED, deadline(h) <= NOW and 1 or 0}
end

-- A push lease that ran out unsettled leaves a call that may still be on its way.
local from, unknown = state(h), lost(h) > 0 and 1 or 0
local topic = topic_of(loc)
finish(loc, h, CANCELLED, settled(h))
save_tombs(tonumber(ARGV[2]), tonumber(ARGV[3]))
save_drops()
if from == DELAYED then due_remove(topic, loc) end
if from == DEAD then dead_remove({loc}) end
close()
return {CANCELLED, unknown}
