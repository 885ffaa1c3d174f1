-- get: one job.
-- KEYS  shard
-- ARGV  locator
-- Returns {state, job state or '', record's start} | {tombstone} | {}
local GET = union(tombs.FIELDS, schedule.FIELDS)

function edges.get(args)
  local loc = args[1]
  shard.begin(GET)
  jobs.load({loc})
  local raw, s = records[loc], states[loc]
  if raw then return {schedule.code(loc, raw, s), s or '', sub(raw, 1, RECORD)} end
  local tomb = tombs.get(loc)
  return tomb and {tomb} or {}
end
