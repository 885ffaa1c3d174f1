-- lease_info: what decides on the retry of a consumer's job.
-- KEYS  shard
-- ARGV  locator, receipt (16 bytes)
-- Returns {job state, record, lane name or ''}, or {} when the receipt is not current
function edges.lease_info(args)
  local loc = args[1]
  shard.begin({})
  jobs.load({loc})
  local raw, s = records[loc], states[loc]
  if not (raw and s and state.code(s) == RESERVED and state.receipt(s) == args[2]) then return {} end
  local lane = record.lane(raw)
  shard.load_rows({lane})
  return {s, raw, lanes.name(lane) or ''}
end
