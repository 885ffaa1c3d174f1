-- audit_count: puts counts right that were found to be wrong. No edge.
-- KEYS  shard
-- ARGV  the counts of COUNTED as they were when it was counted; then delayed, ready, reserved, dead
--   as they were counted; then per lane whose count is wrong: its id, and its jobs
-- Returns {1 where the states' counts were put right, lanes whose count was}; {} where something has
--   moved since it was counted
local COUNTED = {'accepted', 'delayed', 'ready', 'reserved', 'dead', 'done', 'cancelled', 'purged', 'lease'}
local STATES = {'delayed', 'ready', 'reserved', 'dead'}

function edges.audit_count(args)
  begin(COUNTED)
  for i, name in ipairs(COUNTED) do
    if string.format('%.0f', shard[name]) ~= args[i] then return {} end
  end
  local lanes, gone, mended = {}, {}, 0
  for i = 14, #args, 2 do lanes[#lanes + 1] = args[i] end
  lanes_load(lanes)
  for i, lane in ipairs(lanes) do
    local row, n = lane_rows[lane], tonumber(args[13 + 2 * i])
    if row and n > 0 then
      set(lane, six(n) .. sub(row, 7))
      mended = mended + 1
    elseif row then
      gone[#gone + 1] = lane
      mended = mended + 1
    end
  end

  -- Jobs that are gone, or were counted twice, cannot be told from each other: a ledger that would
  -- not add up stays.
  local sum, is_wrong = shard.done + shard.cancelled + shard.purged, false
  for i, name in ipairs(STATES) do
    local n = tonumber(args[9 + i])
    sum, is_wrong = sum + n, is_wrong or n ~= shard[name]
  end
  local is_set = is_wrong and sum == shard.accepted
  if is_set then
    for i, name in ipairs(STATES) do set(name, tonumber(args[9 + i])) end
  end
  close()
  sliced('HDEL', KEY.shard, gone)
  return {is_set and 1 or 0, mended}
end
