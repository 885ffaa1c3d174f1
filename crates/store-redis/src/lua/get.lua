-- get: what is known of one job. No edge; changes nothing.
-- KEYS  shard
-- ARGV  locator
-- Returns {state, run or '', record's start} | {tombstone} | {}
local GET = {'segment', 'slot'}

function edges.get(args)
  local loc = args[1]
  begin(GET)
  load({loc})
  local raw, r = records[loc], runs[loc]
  if raw then return {state_of(loc, raw, r), r or '', sub(raw, 1, RECORD)} end
  local tomb = tomb_get(loc)
  return tomb and {tomb} or {}
end
