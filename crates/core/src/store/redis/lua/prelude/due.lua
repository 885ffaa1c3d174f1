-- Due times: a sorted set per topic, and `turns`: which topic has its turn when.
local function topic_of(loc)
  local raw = records[loc]
  return sub(raw, 31, 30 + byte(raw, 27))
end
local function bucket(topic) return K .. ':bucket:' .. topic end

-- due: topic -> flat list of score, member
local function due_add(lists)
  for topic, list in pairs(lists) do
    local first = list[1]
    for i = 3, #list, 2 do if list[i] < first then first = list[i] end end
    sliced('ZADD', bucket(topic), list)
    call('ZADD', K .. ':turns', 'LT', first, topic)
    moment(first)
  end
end
local function due_remove(topic, loc) call('ZREM', bucket(topic), loc) end
