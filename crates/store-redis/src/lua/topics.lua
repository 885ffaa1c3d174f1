-- topics: what is known of topics, in the order of their names, a part at a time. No edge; changes
--   nothing.
-- KEYS  shard
-- ARGV  from where in `index`, to where, how many members to look at, 1 where the first jobs of the lanes
--   are looked at too
-- Returns {the last member where there may be more, else '', {topic, 1 when it is paused, delayed,
--   ready, reserved, dead, how many were done and cancelled, when the first of those that are delayed and near or ready is due (ms, 0
--   for none), for how long the first that is ready has been due (ms)}, ...}. The first and the last
--   of them may be known in part.

-- When the first delayed job of a lane is due, if that is within the time of a slot.
local function first_due(lane)
  local at = first_score(due_key(lane))
  if at > 0 and at <= NOW + WIDTH then return at end
end

-- When the first ready job of a lane was due. Its queue is nearly in order, and has entries that no
-- longer count: the first few are looked at.
local function first_ready(lane)
  local entries, first = call('LRANGE', queue(lane), 0, 7), nil
  for _, entry in ipairs(entries) do
    local at = read('>I6', entry, 13)
    if not first or at < first then
      local loc = sub(entry, 1, 12)
      load({loc})
      local raw, r = records[loc], runs[loc]
      if raw and not (r and state(r) ~= DELAYED) and due_six(raw, r) == sub(entry, 13) and lane_of(raw) == lane then
        first = at
      end
    end
  end
  return first
end

local function add_lane(answer, lane, row, is_looked_into)
  local delayed, ready, reserved, dead, done, cancelled = read(COUNTS, row)
  for i, n in ipairs({delayed, ready, reserved, dead, done, cancelled}) do answer[2 + i] = answer[2 + i] + n end
  if not is_looked_into then return end
  local due, since = delayed > 0 and first_due(lane), ready > 0 and first_ready(lane)
  for _, at in pairs({due or nil, since or nil}) do
    if answer[9] == 0 or at < answer[9] then answer[9] = at end
  end
  if since then answer[10] = max(answer[10], NOW - since) end
end

function edges.topics(args)
  begin({'slot'})
  local most, answer = tonumber(args[3]), {''}
  local members = call('ZRANGE', KEY.index, args[1], args[2], 'BYLEX', 'LIMIT', 0, most)
  local names, lanes = {}, {}
  for i, member in ipairs(members) do
    local topic = topic_in(member)
    lanes[i] = sub(member, #topic + 2)
    names[#names + 1] = lanes[i] == '' and topics.field(topic) or lanes[i]
  end
  rows_load(names)
  local last = {}
  for i, member in ipairs(members) do
    local topic = topic_in(member)
    if last[1] ~= topic then
      last = {topic, 0, 0, 0, 0, 0, 0, 0, 0, 0}
      answer[#answer + 1] = last
    end
    local row = rows[names[i]]
    if lanes[i] == '' then
      local _, _, paused, done, cancelled = topics.row(names[i])
      last[2] = paused > 0 and 1 or 0
      last[7], last[8] = last[7] + done, last[8] + cancelled
    elseif row then
      add_lane(last, lanes[i], row, args[4] == '1')
    end
  end
  if #members == most then answer[1] = members[most] end
  return answer
end
