-- Pull jobs: grants them (pull), lists their topics (pull_lanes), and reads the data for a retry (lease_info).
-- pull: ready -> reserved, for a consumer: the first pull jobs of one topic. None if the topic is paused, or if the
--   archive outbox is too full.
-- KEYS  shard
-- ARGV  caller, sequence (8 bytes), id that the topic's pull lane should have, limit (jobs), receipt bits (8 bytes),
--   time to run (ms, 0 for each job's own), time to run of jobs without their own (ms), byte budget, topic
-- Returns what grants.lua says about its answers
-- Uses archive, grants, lanes, paused_lanes, ready, records, shard.
-- How many more entries one call passes to skip those of jobs that are gone.
local MOST_GONE = 100
-- How many pull lanes of a topic are visited. There is one, and one more if another lane had its id.
local MOST_PULL_LANES = 4

-- Finds the pull lanes of a topic: those in the index, and the one with the expected id, which may have lost its name
-- to a cancel of its last job and still have entries. If that id is another topic's lane, it is left out.
local function pull_lanes_of(topic, expected)
  local first, last = '[' .. topic .. ' \128', '(' .. topic .. '!'
  local all = {expected}
  for _, name in ipairs(call('ZRANGE', KEY.index, first, last, 'BYLEX', 'LIMIT', 0, MOST_PULL_LANES)) do
    local lane = sub(name, #topic + 2)
    if lane ~= expected then all[#all + 1] = lane end
  end
  shard.load_rows(all)
  local own = {}
  for _, lane in ipairs(all) do
    local name = lanes.name(lane)
    if not name or name == topic .. ' ' then own[#own + 1] = lane end
  end
  return own
end

-- Grants jobs of a lane, and passes over entries of jobs that are gone. Returns how many entries it has passed, whether
-- these are all, and whether it has stopped at an entry that it cannot pass.
local function take(grant, lane, limit)
  -- A lane that lost its last job to a cancel has no name, but may still have entries.
  local n, is_all, is_stuck = 0, false, false
  for _, most in ipairs({limit, MOST_GONE}) do
    local entries = ready.range(lane, n, most + 1)
    local some = min(#entries, most)
    local passed = grants.take(grant, lane, entries, some)
    n, is_all = n + passed, passed == #entries
    is_stuck = passed < some and grant.left > 0 and grant.budget > 0
    if is_all or is_stuck or grant.left == 0 or grant.budget <= 0 then break end
  end
  return n, is_all, is_stuck
end

function scripts.pull(args)
  local topic, limit, wanted, default = args[9], tonumber(args[4]), tonumber(args[6]), tonumber(args[7])
  shard.begin({args[3]})
  local function length(packed)
    local timeout = read('>I4', packed)
    return wanted > 0 and wanted or timeout > 0 and timeout or default
  end
  local grant, answer = grants.begin(args[1], args[2], limit, args[5], tonumber(args[8]), length)
  if not grant then return answer end
  if archive.is_too_full() then return grants.answer(grant, 0, {}) end

  local open, paused = paused_lanes.split(pull_lanes_of(topic, args[3]))
  if #paused > 0 then
    for _, lane in ipairs(paused) do
      if call('ZSCORE', KEY.pulls, lane) then paused_lanes.add({lane}, KEY.pulls) end
    end
    return grants.answer(grant, 0, {})
  end

  local visits, more = {}, 0
  for _, lane in ipairs(open) do
    if grant.left == 0 or grant.budget <= 0 then
      more = grants.MORE
      break
    end
    local before = grant.taken
    local n, is_all, is_stuck = take(grant, lane, grant.left)
    visits[#visits + 1] = {lane, n, is_all, grant.taken - before}
    if not (is_all or is_stuck) then more = grants.MORE end
  end

  grants.save(grant)
  for _, visit in ipairs(visits) do
    if visit[4] > 0 then lanes.move(visit[1], READY, RESERVED, visit[4]) end
  end
  for _, visit in ipairs(visits) do ready.pop(visit[1], visit[2], visit[3]) end
  shard.close()
  return grants.answer(grant, more, {})
end

-- pull_lanes: the topics of the pull lanes that have ready jobs, in the order of their last wake-ups.
-- KEYS  shard
-- ARGV  how many lanes to skip, how many to read
-- Returns {how many lanes were read, {the topics of those that have a name}}
function scripts.pull_lanes(args)
  local all, found = call('ZRANGE', KEY.pulls, args[1], args[1] + args[2] - 1), {}
  shard.begin(all)
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
function scripts.lease_info(args)
  shard.begin()
  local raw, s = jobs.get(args[1])
  if not (raw and s and state.code(s) == RESERVED and state.receipt(s) == args[2]) then return {} end
  local lane = record.lane(raw)
  shard.load_rows({lane})
  return {s, raw, lanes.name(lane) or ''}
end
