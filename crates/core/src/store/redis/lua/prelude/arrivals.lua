-- New jobs. What a record begins with is the head that its job arrives with.
local new, arriving, due_for, ready_for, externals = {}, {}, {}, {}, {}

-- Reads what is known of names that are most likely new: `load`, but looking for heads only
-- where there are records, and tombstones where there are none.
local function look_up(locs)
  local known, absent = {}, {}
  for i, raw in ipairs(fetch(POOL, locs)) do
    if raw then known[#known + 1] = locs[i] end
  end
  load(known)
  for _, loc in ipairs(locs) do
    if not heads[loc] then absent[#absent + 1] = loc end
  end
  if #absent > 0 then tombs_load(absent) end
end

-- The answer where the name is taken.
local function taken(loc, hash)
  local h, tomb = heads[loc], graves[loc]
  if h then return {content_hash(h) == hash and 200 or 409, h} end
  return tomb and {tomb_hash(tomb) == hash and 200 or 409, tomb, 1}
end

local function due_time(text)
  local at = tonumber(text)
  if byte(text) ~= 43 then return math.max(at, NOW) end
  return at > 0 and NOW_UP + at or NOW
end

local function new_head(st, at, timeout, hash, external)
  local flags = external ~= '' and EXTERNAL or 0
  return char(st, flags) .. timeout .. pack('>I6I6', at, NOW) .. hash
end

-- A job arrives with a head and the rest of its record.
local function arrive(loc, h, rest, external)
  local raw = h .. rest
  new[#new + 1], new[#new + 2] = loc, raw
  heads[loc], records[loc] = h, raw
  local st, topic = state(h), topic_of(loc)
  arriving[topic] = true
  if st == READY then
    append(ready_for, lane_of(loc), ready_entry(loc, h))
  elseif st == DELAYED then
    append(due_for, topic, due(h))
    append(due_for, topic, loc)
  end
  if external ~= '' then externals[loc] = external end
  count('accepted', 1)
  count(STATE_NAMES[st], 1)
end

-- Carries out what `arrive` has gathered.
local function save_arrivals()
  topics_add(arriving)
  due_add(due_for)
  ready_add(ready_for, 'RPUSH')
  for loc, payload in pairs(externals) do call('SET', K .. ':body:' .. loc, payload) end
  sliced('HSET', POOL, new)
end
