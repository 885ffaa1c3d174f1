-- Destinations: reads the counts of jobs by origin, and which destinations are paused.
-- Uses lanes, shard.

-- destinations: counts of jobs by origin, of a part of the lanes in the order of their topics.
-- KEYS  shard
-- ARGV  from where in `index`, to where, how many members to read
-- Returns {the last member if there may be more, else '', {{origin, {delayed, ready, reserved, dead}}, ...}}
function scripts.destinations(args)
  shard.begin()
  local most, ids, found, by_origin = tonumber(args[3]), {}, {}, {}
  local members = call('ZRANGE', KEY.index, args[1], args[2], 'BYLEX', 'LIMIT', 0, most)
  for _, member in ipairs(members) do
    local lane = sub(member, #lanes.topic(member) + 2)
    if lane ~= '' and not lanes.is_pull(lane) then ids[#ids + 1] = lane end
  end
  shard.load_rows(ids)
  for _, lane in ipairs(ids) do
    local name = lanes.name(lane)
    if name and not lanes.ends_with(rows[lane], 0) then
      local origin = lanes.origin(name)
      local sum = by_origin[origin]
      if not sum then
        sum = {0, 0, 0, 0}
        by_origin[origin] = sum
        found[#found + 1] = {origin, sum}
      end
      local counts = {read(COUNTS, rows[lane])}
      for i = 1, 4 do sum[i] = sum[i] + counts[i] end
    end
  end
  return {#members == most and members[most] or '', found}
end

-- paused_destinations: the names of all pauses of destinations.
-- KEYS  shard
-- ARGV  none
-- Returns {name, ...}
function scripts.paused_destinations() return call('HKEYS', KEY.destinations) end
