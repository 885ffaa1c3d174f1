-- dead: reads on through the dead jobs of a topic, in order of death. No edge; changes nothing.
-- KEYS  shard
-- ARGV  topic, reason or '', from when on (ms), behind which locator of that time or '', before
--   when (ms), how many are wanted, how much work, 1 when the jobs themselves are wanted
-- Returns {now in us, up to where it has read ('' to the end), what was found ...}: a time (6
--   bytes) with a locator, and where the jobs are wanted {these, run, lane in words, record}
local DEAD_FIELDS = {'slot'}
-- So many entries are read in one step.
local STEP = 500
-- Work is counted in entries: so many of them are as much as one lane, one run, one job.
local LANE, ONE_RUN, ONE_JOB = 2, 3, 6

-- The lanes that are the topic's, of those that entries name; what is known is kept.
local function lanes_of(topic, entries, known)
  local unknown, seen = {}, {}
  for i = 1, #entries, 2 do
    local lane = sub(entries[i], 13)
    if known[lane] == nil and not seen[lane] then
      seen[lane] = true
      unknown[#unknown + 1] = lane
    end
  end
  rows_load(unknown)
  for _, lane in ipairs(unknown) do
    local words = lane_words(lane)
    known[lane] = words and topic_in(words) == topic or false
  end
  return LANE * #unknown
end

-- The entries of the topic that are wanted, each behind its time, and what that took.
local function wanted_of(entries, known, why)
  local names, locs = {}, {}
  for i = 1, #entries, 2 do
    if known[sub(entries[i], 13)] then
      names[#names + 1] = six(tonumber(entries[i + 1])) .. entries[i]
      locs[#locs + 1] = sub(entries[i], 1, 12)
    end
  end
  if why == '' then return names, 0 end
  local found = {}
  load_runs(locs)
  for i, loc in ipairs(locs) do
    local r = runs[loc]
    if r and state(r) == DEAD and reason(r) == why then found[#found + 1] = names[i] end
  end
  return found, ONE_RUN * #locs
end

-- The jobs themselves, but for those that are no longer what their entries say.
local function described_dead(names)
  local jobs, locs = {}, {}
  for i, name in ipairs(names) do locs[i] = sub(name, 7, 18) end
  load(locs)
  for i, loc in ipairs(locs) do
    local raw, r = records[loc], runs[loc]
    local words = raw and lane_of(raw) == sub(names[i], 19) and lane_words(lane_of(raw))
    if words and r and state(r) == DEAD then
      jobs[#jobs + 1] = {sub(names[i], 1, 18), r, words, sub(raw, 1, RECORD + byte(raw, RECORD))}
    end
  end
  return jobs
end

function edges.dead(args)
  begin(DEAD_FIELDS)
  local topic, why, before = args[1], args[2], tonumber(args[5])
  local left, work, whole = tonumber(args[6]), tonumber(args[7]), args[8] == '1'
  local rank, known, names, reached = deaths.rank(args[3], args[4]), {}, {}, ''
  while true do
    local entries = call('ZRANGE', KEY.dead, rank, rank + STEP - 1, 'WITHSCORES')
    local n, is_last = #entries, #entries < 2 * STEP
    while n > 0 and tonumber(entries[n]) >= before do
      entries[n], entries[n - 1], n, is_last = nil, nil, n - 2, true
    end
    rank, work = rank + STEP, work - STEP - lanes_of(topic, entries, known)
    local found, cost = wanted_of(entries, known, why)
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
    reached = six(tonumber(entries[n])) .. sub(entries[n - 1], 1, 12)
    if work <= 0 or left == 0 then break end
  end
  local answer = {NOW_US, reached}
  for i, found in ipairs(whole and described_dead(names) or names) do
    answer[2 + i] = whole and found or sub(found, 1, 18)
  end
  return answer
end
