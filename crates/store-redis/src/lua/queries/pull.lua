-- Pull jobs: the lanes that have some ready, and the data that decides on a retry.

-- pull_lanes: the topics of the pull lanes that are not empty, in the order of their last wake-ups.
-- KEYS  shard
-- ARGV  how many lanes to skip, how many to look at
-- Returns {how many lanes it has looked at, {the topics of those that have a name}}
function edges.pull_lanes(args)
  local all, found = call('ZRANGE', KEY.pulls, args[1], args[1] + args[2] - 1), {}
  shard.begin({}, all)
  shard.load_rows(all)
  for _, lane in ipairs(all) do
    local name = lanes.name(lane)
    if name then found[#found + 1] = lanes.topic(name) end
  end
  return {#all, found}
end

-- lease_info: the data that decides on the retry of a consumer's job.
-- KEYS  shard
-- ARGV  locator, receipt (16 bytes)
-- Returns {job state, record, lane name or ''}, or {} if the receipt is not current
function edges.lease_info(args)
  shard.begin({})
  local raw, s = jobs.get(args[1])
  if not (raw and s and state.code(s) == RESERVED and state.receipt(s) == args[2]) then return {} end
  local lane = record.lane(raw)
  shard.load_rows({lane})
  return {s, raw, lanes.name(lane) or ''}
end
