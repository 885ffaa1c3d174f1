-- Pages of records, of job states and of the index of tags, for the consistency check. As with all scans of a check the
-- answer is {run} alone if the scan began in another run of the server.
-- Uses check, lanes, records, shard, tag_index.
local PLACES = {[DELAYED] = 1, [READY] = 2, [RESERVED] = 3, [DEAD] = 4}

-- check_jobs: checks a page of records, each with the index that must hold it.
-- KEYS  shard
-- ARGV  the arguments of a scan
-- Returns {run, where to go on ('0' is the end), {{delayed, ready, reserved, dead} as counted, jobs that wait in ready
--   queues, jobs that wait in slots (locator, due, lane, attempts: 30 bytes each), {{lane, delayed, ready, reserved and
--   dead (4 bytes each)}, ...}, {{problem, locator, state, lane name, record's start}, ...}}}
function scripts.check_jobs(args)
  check.begin()
  local run, at, found = check.scan('HSCAN', KEY.pool, unpack(args))
  if not at then return {run} end
  local locs, ids, per_lane, problems = {}, {}, {}, {}
  local counts, in_queues, in_slots = {0, 0, 0, 0}, {}, {}

  local function add_problem(problem, loc, code, raw)
    local whole = record.whole(raw)
    local name = whole and lanes.name(record.lane(raw)) or ''
    problems[#problems + 1] = {problem, loc, code, name, whole and record.head(raw) or ''}
  end

  for i = 1, #found, 2 do
    local loc, raw = found[i], found[i + 1]
    locs[#locs + 1], records[loc] = loc, raw
    if record.whole(raw) then
      local lane = record.lane(raw)
      if not per_lane[lane] then ids[#ids + 1] = lane end
      per_lane[lane] = per_lane[lane] or {0, 0, 0, 0}
    end
  end
  shard.load_rows(ids)
  for i, s in ipairs(fetch(KEY.states, locs)) do
    local loc = locs[i]
    local raw = records[loc]
    if #loc ~= 12 or not record.whole(raw) or (s and not state.whole(s)) then
      add_problem('unreadable', loc, 0, raw)
    else
      local lane = record.lane(raw)
      local code, is_there = check.index_of(loc, raw, s)
      local place, of_lane = PLACES[code], per_lane[lane]
      if place then counts[place], of_lane[place] = counts[place] + 1, of_lane[place] + 1 end
      if is_there == false then
        add_problem('unindexed', loc, code, raw)
      elseif is_there == nil then
        local list = code == READY and in_queues or in_slots
        list[#list + 1] = check.waiting(loc, raw, s)
      end
      if not rows[lane] then add_problem('lane', loc, code, raw) end
      if not tag_index.holds(loc, raw) then add_problem('tag', loc, code, raw) end
      if record.is_external(raw) and call('EXISTS', KEY.body .. loc) == 0 then add_problem('body', loc, code, raw) end
    end
  end
  local by_lane = {}
  for lane, n in pairs(per_lane) do by_lane[#by_lane + 1] = {lane, pack('>i4i4i4i4', unpack(n))} end
  return {run, at, {counts, concat(in_queues), concat(in_slots), by_lane, problems}}
end

-- check_states: finds job states without a record, a page at a time.
-- KEYS  shard
-- ARGV  the arguments of a scan
-- Returns {run, where to go on ('0' is the end), {locator, ...}}
function scripts.check_states(args)
  local run, at, found = check.scan('HSCAN', KEY.states, unpack(args))
  if not at then return {run} end
  local alone = {}
  for i = 1, #found, 2 do
    if call('HEXISTS', KEY.pool, found[i]) == 0 then alone[#alone + 1] = found[i] end
  end
  return {run, at, alone}
end

-- check_tags: finds members of the index of tags that lead to no job with the tag, a page at a time.
-- KEYS  shard
-- ARGV  the arguments of a scan
-- Returns {run, where to go on ('0' is the end), {member, ...}}
function scripts.check_tags(args)
  check.begin()
  local run, at, found = check.scan('ZSCAN', KEY.tags, unpack(args))
  if not at then return {run} end
  local members = {}
  for i = 1, #found, 2 do members[#members + 1] = found[i] end
  return {run, at, check.stray_tags(members)}
end
