-- held: what a consumer's job needs for its next tier. No edge; changes nothing.
-- KEYS  shard
-- ARGV  locator, receipt (number and bits, 16 bytes)
-- Returns {run, record, lane in words or ''}, or {} when the receipt is not current
function edges.held(args)
  local loc = args[1]
  begin({'segment'})
  load({loc})
  local r = runs[loc]
  if not (records[loc] and r and state(r) == RESERVED and receipt(r) == args[2]) then return {} end
  local lane = lane_of(records[loc])
  rows_load({lane})
  return {r, records[loc], lane_words(lane) or ''}
end
