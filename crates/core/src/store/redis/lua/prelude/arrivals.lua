-- New jobs.
local new, fresh, words_of

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
    local st = fresh[loc] or state_of(loc, raw, runs[loc])
    return described(content_hash(raw) == hash and 200 or 409, st, raw, runs[loc])
  end
  return tomb and {tomb_hash(tomb) == hash and 200 or 409, tomb}
end

local function due_time(text)
  local at = tonumber(text)
  if byte(text) ~= 43 then return max(at, NOW) end
  return at > 0 and NOW_UP + at or NOW
end

-- A job arrives. `times` is due and created, packed; `rest` is the rest of its record.
local function arrive(loc, st, at, times, lane, rest, external)
  local raw = times .. rest
  local n = #new
  new[n + 1], new[n + 2] = loc, raw
  records[loc], fresh[loc] = raw, st
  if st == READY then
    append(ready_for, lane, entry_of(loc, sub(times, 1, 6)))
  elseif st == DELAYED then
    schedule(lane, at, entry_of(loc, sub(times, 1, 6)))
  end
  if external ~= '' then call('SET', KEY.body .. loc, external) end
  lane_count(lane, 1)
  count('accepted', 1)
  count(STATE_NAMES[st], 1)
end

-- Carries out what `arrive` has gathered.
local function save_arrivals()
  if #new == 0 then return end
  local arrived = {}
  for lane in pairs(lane_counts) do arrived[lane] = words_of[lane] end
  lanes_arrive(arrived)
  save_schedule()
  save_ready('RPUSH')
  wake_takers()
  sliced('HSET', KEY.pool, new)
end

-- The lanes that the arguments begin with: how many, then id and words of each. Returns
-- their ids, and where the jobs begin.
local function lanes_named(args)
  local lanes, n = {}, tonumber(args[1])
  words_of = {}
  for i = 1, n do
    lanes[i] = args[2 * i]
    words_of[args[2 * i]] = args[2 * i + 1]
  end
  return lanes, 2 * n + 2
end
