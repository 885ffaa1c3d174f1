-- Gauges of a shard and of topics: how many jobs are in each state, and for how long the oldest ready job has been due;
-- and the archive outbox. Only the carrier that holds the shard gets them, so that each shard is counted once.
-- Uses archive, carrier, oldest, shard, topics.
local LEDGER = {'delayed', 'ready', 'reserved', 'done', 'dead', 'cancelled'}

-- Returns at most `most` lanes with ready jobs, after the first `skip`: those that wait for a turn, the longest first,
-- then pull lanes, then paused ones.
local function ready_lanes(skip, most)
  local found = {}
  for _, key in ipairs({KEY.lanes, KEY.pulls, KEY.paused}) do
    if #found == most then break end
    for _, name in ipairs(call('ZRANGE', key, skip, skip + most - #found - 1)) do
      -- A paused lane is listed by its topic and its id.
      found[#found + 1] = key == KEY.paused and sub(name, -8) or name
    end
    skip = max(0, skip - call('ZCARD', key))
  end
  return found
end

-- Returns the ms since `first`; -1 if that is math.huge.
local function age(first) return first < math.huge and max(0, NOW - first) or -1 end

-- gauges: the ledger, and the oldest ready job of some lanes.
-- KEYS  shard
-- ARGV  epoch, how many lanes to skip, how many lanes to read
-- Returns {} if another carrier has the shard, or {jobs in each state, how many are missing, for how long the oldest
--   ready job of these lanes has been due (ms), -1 if there is none; how many lanes were read, -1 if there are no
--   others; of the archive outbox how many entries it has, their bytes, how many were dropped, for how long the first
--   job has ended (ms), -1 if there is none, 1 if submits are refused because of it; how many tombstones went early}
function scripts.gauges(args)
  shard.begin()
  if carrier.is_fenced(args[1]) then return {} end
  local answer, first, looked = {}, math.huge, 0
  for i, name in ipairs(LEDGER) do answer[i] = fields[name] end
  local most = tonumber(args[3])
  local found = fields.ready > 0 and ready_lanes(tonumber(args[2]), most) or {}
  for _, lane in ipairs(found) do
    if oldest.is_tired() then break end
    first = oldest.of(lane, first) or first
    looked = looked + 1
  end
  answer[7] = fields.missing
  answer[8] = age(first)
  answer[9] = (#found == most or looked < #found) and looked or -1
  local oldest_end = archive.oldest()
  answer[10], answer[11], answer[12] = archive.count(), fields.archive_bytes, fields.archive_dropped
  answer[13] = oldest_end > 0 and age(oldest_end) or -1
  answer[14] = archive.is_full() and 1 or 0
  answer[15] = fields.tombstones_evicted_early
  return answer
end

-- Adds the counts of a lane to `sum`. Returns when the first ready job was due (ms): of this lane, if its jobs are read
-- and that is earlier, else `first`.
local function add_lane(sum, lane, first, looks_at_jobs)
  local delayed, ready_now, reserved, dead, done, cancelled = read(COUNTS, rows[lane])
  for code, n in ipairs({delayed, ready_now, reserved, done, dead, cancelled}) do sum[code] = sum[code] + n end
  return looks_at_jobs and ready_now > 0 and oldest.of(lane, first) or first
end

-- topic_gauges: counts of topics, and the oldest ready job of each. A topic with many lanes is read in parts.
-- KEYS  shard
-- ARGV  epoch, 1 to read ready jobs too, how many members of `index` to read, where to begin in the first topic, topics
-- Returns {} if another carrier has the shard, or {the last member if the last topic may have more lanes, else '',
--   {{jobs in each state, for how long the oldest ready job has been due (ms), -1 if there is none}, ...}}: the topics
--   as far as they were read
function scripts.topic_gauges(args)
  shard.begin()
  if carrier.is_fenced(args[1]) then return {} end
  local looks_at_jobs, left, from, found = args[2] == '1', tonumber(args[3]), args[4], {}
  for i = 5, #args do
    if left == 0 then break end
    local topic, first, sum = args[i], math.huge, {0, 0, 0, 0, 0, 0}
    local members = call('ZRANGE', KEY.index, from, '(' .. topic .. '!', 'BYLEX', 'LIMIT', 0, left)
    if args[i + 1] then from = '[' .. args[i + 1] .. ' ' end
    local names, lane_ids, last = {}, {}, nil
    for j, member in ipairs(members) do
      lane_ids[j] = sub(member, #topic + 2)
      names[j] = lane_ids[j] == '' and topics.field(topic) or lane_ids[j]
    end
    shard.load_rows(names)
    for j, name in ipairs(names) do
      if lane_ids[j] == '' then
        local _, _, _, done, cancelled = topics.row(name)
        sum[DONE], sum[CANCELLED] = sum[DONE] + done, sum[CANCELLED] + cancelled
      elseif rows[name] then
        first = add_lane(sum, name, first, looks_at_jobs)
      end
      left, last = left - 1, members[j]
      if oldest.is_tired() then left = 0 end
      if left == 0 then break end
    end
    sum[7] = age(first)
    found[#found + 1] = sum
    if left == 0 then return {last or '', found} end
  end
  return {'', found}
end
