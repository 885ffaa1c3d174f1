-- topics: counts of topics in the order of their names, a part at a time.
-- KEYS  shard
-- ARGV  from where in `index`, to where, how many members to read, 1 to read the lanes' first jobs too, or
--   `sum` to add up all topics
-- Returns {the last member if there may be more, else '', {{topic, {1 if it is paused, delayed, ready,
--   reserved, dead, done, cancelled, when the first job is due that is ready or due soon (ms, 0 for none),
--   for how long the first ready job has been due (ms)}}, ...}}. The first and the last topic may be
--   counted in part. With `sum` {the last member as above, the topics with spaces between them, the counts of all}.
-- Uses due_index, lanes, oldest, shard, topics.
local DUE, LATE = 8, 9

-- Reads when the first delayed job of a lane is due (ms); returns nil if that is later than the length of a slot.
local function first_due(lane)
  local at = first_score(due_index.key(lane))
  if at > 0 and at <= NOW + WIDTH then return at end
end

local function add_lane(counts, lane, row, looks_at_jobs)
  local delayed, ready_now, reserved, dead, done, cancelled = read(COUNTS, row)
  for i, n in ipairs({delayed, ready_now, reserved, dead, done, cancelled}) do counts[1 + i] = counts[1 + i] + n end
  if not looks_at_jobs then return end
  local at, since = delayed > 0 and first_due(lane), ready_now > 0 and oldest.of(lane, math.huge)
  for _, time in pairs({at or nil, since or nil}) do
    if counts[DUE] == 0 or time < counts[DUE] then counts[DUE] = time end
  end
  if since then counts[LATE] = max(counts[LATE], NOW - since) end
end

function scripts.topics(args)
  shard.begin()
  local most, found = tonumber(args[3]), {}
  local members = call('ZRANGE', KEY.index, args[1], args[2], 'BYLEX', 'LIMIT', 0, most)
  local names, lane_ids = {}, {}
  for i, member in ipairs(members) do
    local topic = lanes.topic(member)
    lane_ids[i] = sub(member, #topic + 2)
    names[#names + 1] = lane_ids[i] == '' and topics.field(topic) or lane_ids[i]
  end
  shard.load_rows(names)
  local is_sum = args[4] == 'sum'
  local last, counts
  for i, member in ipairs(members) do
    local topic = lanes.topic(member)
    if last ~= topic then
      last, counts = topic, is_sum and counts or {0, 0, 0, 0, 0, 0, 0, 0, 0}
      found[#found + 1] = is_sum and topic or {topic, counts}
    end
    local row = rows[names[i]]
    if lane_ids[i] == '' then
      local _, _, paused, done, cancelled = topics.row(names[i])
      counts[1] = paused > 0 and 1 or counts[1]
      counts[6], counts[7] = counts[6] + done, counts[7] + cancelled
    elseif row then
      add_lane(counts, lane_ids[i], row, args[4] == '1')
    end
  end
  local behind = #members == most and members[most] or ''
  if is_sum then return {behind, concat(found, ' '), counts or {0, 0, 0, 0, 0, 0, 0, 0, 0}} end
  return {behind, found}
end
