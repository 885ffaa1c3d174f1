-- New jobs.
local new, words_of

-- Reads what is known of names that are most likely new; tombstones where there are no records.
local function look_up(locs)
  local known, absent = {}, {}
  local raws = fetch(KEY.pool, locs)
  for i = 1, #locs do
    local list = raws[i] and known or absent
    list[#list + 1] = locs[i]
  end
  load(known)
  for _, loc in ipairs(known) do
    if not records[loc] then absent[#absent + 1] = loc end
  end
  tombs_load(absent)
end

local function described(code, st, raw, r) return {code, st, r or '', sub(raw, 1, RECORD)} end

-- The answer where the name is taken.
local function taken(loc, hash)
  local raw, tomb = records[loc], graves[loc]
  if raw then
    local st = state_of(loc, raw, runs[loc])
    return described(content_hash(raw) == hash and 200 or 409, st, raw, runs[loc])
  end
  return tomb and {tomb_hash(tomb) == hash and 200 or 409, tomb}
end

local function due_time(text)
  local at = tonumber(text)
  if byte(text) ~= 43 then return max(at, NOW) end
  return at > 0 and NOW_UP + at or NOW
end

-- Jobs that arrive with one lane and one due time; with a state for what is neither delayed
-- nor ready.
local function arrivals_at(lane, at, st)
  local times = pack('>I6I6', at, NOW)
  return {lane = lane, at = at, times = times, due = sub(times, 1, 6), entries = {},
    state = st or at <= NOW and READY or DELAYED, count = 0}
end

-- A job arrives; `rest` is the rest of its record.
local function arrive(group, loc, rest, external)
  local n, size = #new, group.count + 1
  new[n + 1], new[n + 2] = loc, group.times .. rest
  group.count = size
  group.entries[size] = loc .. group.due
  if external ~= '' then call('SET', KEY.body .. loc, external) end
  events.submitted(loc, group.lane, group.due, rest)
end

-- All of a group have arrived.
local function arrived(group)
  local n, lane = group.count, group.lane
  if n == 0 then return end
  if group.state == READY then
    append_all(ready_for, lane, group.entries)
  elseif group.state == DELAYED then
    schedule_all(lane, group.at, group.entries)
  end
  count('accepted', n)
  move(lane, nil, group.state, n)
end

-- Carries out what `arrive` has gathered.
local function save_arrivals()
  if #new == 0 then return end
  local lanes = {}
  for lane in pairs(lane_counts) do lanes[lane] = words_of[lane] end
  topics.arrive(lanes)
  save_schedule()
  save_ready('RPUSH')
  wake_takers()
  sliced('HSET', KEY.pool, new)
end

-- The lanes that the arguments begin with: how many, then id and words of each. Returns
-- their rows' names and those of their topics, and where the jobs begin.
local function lanes_named(args)
  local names, n = {}, tonumber(args[1])
  words_of = {}
  for i = 1, n do
    local lane, words = args[2 * i], args[2 * i + 1]
    words_of[lane] = words
    names[2 * i - 1], names[2 * i] = lane, topics.field(topic_in(words))
  end
  return names, 2 * n + 2
end
