-- Due times: a sorted set per topic, and `turns`: which topic has its turn when.
local function bucket(topic) return K .. ':bucket:' .. topic end

-- due: topic -> flat list of score, member
local function due_add(due)
  for topic, list in pairs(due) do
    local first = list[1]
    for i = 3, #list, 2 do if list[i] < first then first = list[i] end end
    sliced('ZADD', bucket(topic), list)
    call('ZADD', K .. ':turns', 'LT', first, topic)
    moment(first)
  end
end
local function due_remove(topic, loc) call('ZREM', bucket(topic), loc) end
local function due_topics(limit)
  return call('ZRANGE', K .. ':turns', '-inf', NOW, 'BYSCORE', 'LIMIT', 0, limit)
end

-- The first entries of a topic: those due, at most `limit` of them, as locators and due
-- times; and the due time of the one that follows them, if any.
local function due_first(topic, limit)
  local list = call('ZRANGE', bucket(topic), 0, limit, 'WITHSCORES')
  local locs, times = {}, {}
  for i = 1, #list, 2 do
    local at = tonumber(list[i + 1])
    if #locs == limit or at > NOW then return locs, times, at end
    locs[#locs + 1], times[#times + 1] = list[i], at
  end
  return locs, times, nil
end

-- Takes the first n away; `following` is the due time that is then the earliest, if any.
-- A topic that is still due goes behind the others that are.
local function due_pop(topic, n, following)
  if following then
    call('ZADD', K .. ':turns', math.max(following, NOW), topic)
  else
    call('ZREM', K .. ':turns', topic)
  end
  if n > 0 then call('ZREMRANGEBYRANK', bucket(topic), 0, n - 1) end
end
