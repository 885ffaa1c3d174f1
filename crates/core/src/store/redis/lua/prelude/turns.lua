-- Topics that are due, in turn.
local function due_topics(limit)
  return call('ZRANGE', K .. ':turns', '-inf', NOW, 'BYSCORE', 'LIMIT', 0, limit)
end

-- The first entries of a topic that are due, and the time of the one that follows them, if any.
local function due_first(topic, limit)
  local locs = call('ZRANGE', bucket(topic), '-inf', NOW, 'BYSCORE', 'LIMIT', 0, limit)
  local following = call('ZRANGE', bucket(topic), #locs, #locs, 'WITHSCORES')
  return locs, tonumber(following[2])
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
