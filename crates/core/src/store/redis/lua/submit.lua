#!lua
-- submit: nothing -> delayed, or ready when already due.
-- KEYS  shard
-- ARGV  per job: locator, due ("+ms" from now, or absolute ms), timeout (4 bytes), content
--   hash (8 bytes), the rest of the record, external payload or ''
-- Returns per job: {201, head} new; {200, head} the same content again; {409, head}
--   other content; {200 or 409, tombstone, 1} once the job has ended.
open('next', 'accepted', 'delayed', 'ready', 'segment')
local locs = {}
for i = 1, #ARGV, 6 do locs[#locs + 1] = ARGV[i] end
load_if_known(locs)
local absent = {}
for _, loc in ipairs(locs) do if not heads[loc] then absent[#absent + 1] = loc end end
if #absent > 0 then tombs_load(absent) end

local function due_time(text)
  local at = tonumber(text)
  if byte(text) ~= 43 then return math.max(at, NOW) end
  return at > 0 and NOW_UP + at or NOW
end

local answers, due, ready, topics, externals, new = {}, {}, {}, {}, {}, {}
local function accept(loc, at, timeout, hash, rest, external)
  local st, flags = at <= NOW and READY or DELAYED, external ~= '' and EXTERNAL or 0
  local h = char(st, flags) .. timeout .. pack('>I6I6', at, NOW) .. hash
  new[#new + 1], new[#new + 2] = loc, h .. rest
  heads[loc], records[loc] = h, new[#new]
  local topic = topic_of(loc)
  topics[topic] = true
  if st == READY then
    append(ready, lane_of(loc), ready_entry(loc, h))
  else
    append(due, topic, at)
    append(due, topic, loc)
  end
  if flags > 0 then externals[loc] = external end
  count('accepted', 1)
  count(STATE_NAMES[st], 1)
  return {201, h}
end

for i, loc in ipairs(locs) do
  local at, timeout, hash, rest, external = unpack(ARGV, 6 * i - 4, 6 * i)
  local h, tomb = heads[loc], graves[loc]
  if h then
    answers[i] = {content_hash(h) == hash and 200 or 409, h}
  elseif tomb then
    answers[i] = {tomb_hash(tomb) == hash and 200 or 409, tomb, 1}
  else
    answers[i] = accept(loc, due_time(at), timeout, hash, rest, external)
  end
end

topics_add(topics)
due_add(due)
ready_add(ready, 'RPUSH')
for loc, payload in pairs(externals) do put_external(loc, payload) end
add(new)
close()
return answers
