#!lua
-- submit: nothing -> delayed, or ready when already due.
-- KEYS  shard
-- ARGV  per job: locator, due ("+ms" from now, or absolute ms), tail, external payload or ''
-- Returns per job: {201, head} new; {200, head} the same content again; {409, head}
--   other content; {200 or 409, tombstone, 1} once the job has ended.
local answers, new, known, due, ready, topics = {}, {}, {}, {}, {}, {}

for i = 1, #ARGV, 4 do
  local loc, tail = ARGV[i], ARGV[i + 2]
  local j, tomb = known[loc] or get(loc), nil
  if not j then tomb = tomb_get(loc) end
  local hash = j and content_hash(j) or tomb and tomb.hash
  if hash then
    local code = hash == sub(tail, 1, 8) and 200 or 409
    answers[#answers + 1] = tomb and {code, tomb.raw, 1} or {code, head_of(j)}
  else
    local external = ARGV[i + 3] ~= ''
    local relative = sub(ARGV[i + 1], 1, 1) == '+'
    local at = tonumber(ARGV[i + 1])
    if relative and at > 0 then at = NOW_UP + at else at = math.max(relative and 0 or at, NOW) end
    j = fresh(at <= NOW and READY or DELAYED, external and EXTERNAL or 0, at, tail)
    known[loc] = j
    new[#new + 1] = {loc, j, ARGV[i + 3]}
    local topic, origin = names(j)
    topics[topic] = true
    if j.st == READY then
      append(ready, lane_of(topic, origin), ready_entry(loc, at))
    else
      append(due, topic, at, loc)
    end
    move(nil, j.st)
    answers[#answers + 1] = {201, head_of(j)}
  end
end
if #new == 0 then return answers end

for topic in pairs(topics) do call('SADD', K .. ':topics', topic) end
due_add(due)
ready_add(ready, 'RPUSH')
for _, n in ipairs(new) do
  if n[3] ~= '' then put_external(n[1], n[3]) end
  put(n[1], n[2])
end
count('accepted', #new)
write_tally()
write_moment()
return answers
