-- audit_count: puts counts right that were found to be wrong. No edge.
-- KEYS  shard
-- ARGV  the counts of COUNTED as they were when it was counted; then delayed, ready, reserved, dead
--   as they were counted; then of SUMS, each '' where it is not known; then how many lanes follow,
--   and per lane whose counts are wrong: its id, and its counts (4 bytes each); then per topic: its
--   name, and its lanes
-- Returns {1 where the states' counts were put right, lanes and topics that were}; {} where something
--   has moved since it was counted
local COUNTED = {'accepted', 'delayed', 'ready', 'reserved', 'dead', 'done', 'cancelled', 'purged', 'lease', 'pauses'}
local STATES, SUMS = {'delayed', 'ready', 'reserved', 'dead'}, {'lanes', 'topics', 'paused'}
-- Behind how many arguments the states stand, the sums, and the lanes.
local OF_STATES, OF_SUMS, OF_LANES = 10, 14, 18

local function put_lanes(args, most)
  local lanes, gone, mended = {}, {}, 0
  for i = 1, most do lanes[i] = args[OF_LANES + 2 * i - 1] end
  rows_load(lanes)
  for i, lane in ipairs(lanes) do
    local counts, words = args[OF_LANES + 2 * i], lane_words(lane)
    if words and counts ~= sub(NO_COUNTS, 1, 16) then
      set(lane, counts .. sub(rows[lane], 17))
    elseif words then
      gone[#gone + 1] = lane
    end
    mended = mended + (words and 1 or 0)
  end
  topics.drop_rows(gone, 0)
  return mended
end

local function put_topics(args, from)
  local fields = {}
  for i = from, #args, 2 do fields[#fields + 1] = topics.field(args[i]) end
  rows_load(fields)
  for i = from, #args, 2 do topics.set_lanes(args[i], tonumber(args[i + 1])) end
  return #fields
end

function edges.audit_count(args)
  begin({'lanes', 'topics', 'paused', unpack(COUNTED)})
  for i, name in ipairs(COUNTED) do
    if string.format('%.0f', shard[name]) ~= args[i] then return {} end
  end
  local lanes = tonumber(args[OF_LANES])
  local mended = put_lanes(args, lanes) + put_topics(args, OF_LANES + 2 * lanes + 1)
  for i, name in ipairs(SUMS) do
    local n = tonumber(args[OF_SUMS + i])
    if n then set(name, n) end
  end

  -- Jobs that are gone, or were counted twice, cannot be told from each other: a ledger that would
  -- not add up stays.
  local sum, is_wrong = shard.done + shard.cancelled + shard.purged, false
  for i, name in ipairs(STATES) do
    local n = tonumber(args[OF_STATES + i])
    sum, is_wrong = sum + n, is_wrong or n ~= shard[name]
  end
  local is_set = is_wrong and sum == shard.accepted
  if is_set then
    for i, name in ipairs(STATES) do set(name, tonumber(args[OF_STATES + i])) end
  end
  close()
  return {is_set and 1 or 0, mended}
end
