-- dead: reads on through the dead jobs of a topic, in order of death.
-- KEYS  shard
-- ARGV  topic, reason or '', from when (ms), behind which locator of that time or '', before when (ms),
--   how many are wanted, how much work, 1 when the jobs themselves are wanted
-- Returns {now (us), up to where it has read ('' to the end), {found, ...}}. A place is a time (6 bytes)
--   with a locator. Found are places, or if jobs are wanted {place, job state, lane name, record}
-- Uses dead_letters, lanes, records, shard.
-- How many entries are read in one step.
local STEP = 500
-- Work is counted in entries. A lane, a job state and a job cost as much as this many entries.
local LANE, ONE_STATE, ONE_JOB = 2, 3, 6

-- Sets in `known` which lanes of the entries belong to the topic. Returns the work that took.
local function learn_lanes(topic, entries, known)
  local unknown, seen = {}, {}
  for i = 1, #entries, 2 do
    local lane = sub(entries[i], 13)
    if known[lane] == nil and not seen[lane] then
      seen[lane] = true
      unknown[#unknown + 1] = lane
    end
  end
  shard.load_rows(unknown)
  for _, lane in ipairs(unknown) do
    local name = lanes.name(lane)
    known[lane] = name and lanes.topic(name) == topic or false
  end
  return LANE * #unknown
end

-- Finds the topic's entries with the reason `why`, '' for any; returns each after its time (6 bytes), and the work done.
local function matching(entries, known, why)
  local names, locs = {}, {}
  for i = 1, #entries, 2 do
    if known[sub(entries[i], 13)] then
      names[#names + 1] = six(tonumber(entries[i + 1])) .. entries[i]
      locs[#locs + 1] = sub(entries[i], 1, 12)
    end
  end
  if why == '' then return names, 0 end
  local found = {}
  jobs.load_states(locs)
  for i, loc in ipairs(locs) do
    local s = states[loc]
    if s and state.code(s) == DEAD and state.reason(s) == why then found[#found + 1] = names[i] end
  end
  return found, ONE_STATE * #locs
end

-- Reads the jobs themselves, and returns them without those that are no longer dead or in another lane.
local function with_jobs(names)
  local found, locs = {}, {}
  for i, name in ipairs(names) do locs[i] = sub(name, 7, 18) end
  jobs.load(locs)
  for i, loc in ipairs(locs) do
    local raw, s = records[loc], states[loc]
    local lane = raw and record.lane(raw) == sub(names[i], 19) and lanes.name(record.lane(raw))
    if lane and s and state.code(s) == DEAD then
      found[#found + 1] = {sub(names[i], 1, 18), s, lane, record.head(raw)}
    end
  end
  return found
end

-- Computes the place up to which entries were read. The place of another topic's job, which may be another tenant's, is
-- given roughly, unless the next call would begin where this one did.
local function place_of_last(entries, known, from, behind)
  local n = #entries
  local at, loc = six(tonumber(entries[n])), sub(entries[n - 1], 1, 12)
  local start = sub(loc, 1, dead_letters.ROUGH)
  for i = n - 1, 1, -2 do
    local is_near = six(tonumber(entries[i + 1])) == at and sub(entries[i], 1, dead_letters.ROUGH) == start
    if not is_near then break end
    if known[sub(entries[i], 13)] then return at .. sub(entries[i], 1, 12) end
  end
  if at == six(from) and sub(behind, 1, dead_letters.ROUGH) == start then return at .. loc end
  return at .. start .. string.rep('\0', 12 - dead_letters.ROUGH)
end

local function without_lanes(names)
  for i, name in ipairs(names) do names[i] = sub(name, 1, 18) end
  return names
end

function scripts.dead(args)
  shard.begin()
  local topic, why, before = args[1], args[2], tonumber(args[5])
  local left, work, whole = tonumber(args[6]), tonumber(args[7]), args[8] == '1'
  local rank, known, names, reached = dead_letters.rank(args[3], args[4]), {}, {}, ''
  while true do
    local entries = call('ZRANGE', KEY.dead, rank, rank + STEP - 1, 'WITHSCORES')
    local n, is_last = #entries, #entries < 2 * STEP
    while n > 0 and tonumber(entries[n]) >= before do
      entries[n], entries[n - 1], n, is_last = nil, nil, n - 2, true
    end
    rank, work = rank + STEP, work - STEP - learn_lanes(topic, entries, known)
    local found, cost = matching(entries, known, why)
    for i = 1, min(#found, left) do names[#names + 1] = found[i] end
    if #found > left then
      -- The rest is for the next call.
      reached = left > 0 and sub(names[#names], 1, 18) or reached
      break
    end
    left, work = left - #found, work - cost - (whole and ONE_JOB * #found or 0)
    if is_last then
      reached = ''
      break
    end
    reached = place_of_last(entries, known, tonumber(args[3]), args[4])
    if work <= 0 or left == 0 then break end
  end
  return {NOW_US, reached, whole and with_jobs(names) or without_lanes(names)}
end
