#!lua
-- submit: nothing -> delayed, or ready when already due.
-- KEYS  shard
-- ARGV  per job: locator, due ("+ms" from now, or absolute ms), tail, external payload or ''
-- Returns per job: {201, head} new; {200, head} the same content again; {409, head}
--   other content; {200 or 409, tombstone, 1} once the job has ended.
local locs = {}
for i = 1, #ARGV, 4 do locs[#locs + 1] = ARGV[i] end
load(locs)
local absent = {}
for _, loc in ipairs(locs) do if not get(loc) then absent[#absent + 1] = loc end end
if #absent > 0 then tombs_load(absent) end

local answers, due, ready, topics, externals = {}, {}, {}, {}, {}
for i = 1, #ARGV, 4 do
  local loc, tail, external = ARGV[i], ARGV[i + 2], ARGV[i + 3]
  local j = get(loc)
  local tomb = not j and tomb_get(loc)
  if j or tomb then
    local code = (j and content_hash(j) or tomb.hash) == sub(tail, 1, 8) and 200 or 409
    answers[#answers + 1] = tomb and {code, tomb.raw, 1} or {code, head_of(j)}
  else
    local relative = sub(ARGV[i + 1], 1, 1) == '+'
    local at = tonumber(ARGV[i + 1])
    if relative and at > 0 then at = NOW_UP + at else at = math.max(relative and 0 or at, NOW) end
    j = fresh(at <= NOW and READY or DELAYED, external ~= '' and EXTERNAL or 0, at, tail)
    local topic, origin = names(j)
    topics[topic] = true
    if j.st == READY then
      append(ready, lane_of(topic, origin), ready_entry(loc, at))
    else
      append(due, topic, at, loc)
    end
    if external ~= '' then externals[loc] = external end
    write(loc, j)
    count('accepted', 1)
    move(nil, j.st)
    answers[#answers + 1] = {201, head_of(j)}
  end
end

for topic in pairs(topics) do call('SADD', K .. ':topics', topic) end
due_add(due)
ready_add(ready, 'RPUSH')
for loc, payload in pairs(externals) do put_external(loc, payload) end
save()
write_tally()
write_moment()
return answers
