-- Ready queues: a list per lane (topic and origin), and `lanes`: those that are not empty,
-- in turn. An entry names a job and the due time it was promoted for.
local function lane_of(topic, origin) return topic .. ' ' .. origin end
local function queue(lane) return K .. ':ready:' .. lane end
local function ready_entry(loc, due) return loc .. pack('>I6', due) end
local function ready_loc(entry) return sub(entry, 1, 12) end
local function ready_match(entry, j)
  return j and j.st == READY and j.due == read('>I6', entry, 13)
end

-- ready: lane -> list of entries. `push` is RPUSH, or LPUSH for those handed over again.
local function ready_add(ready, push)
  local woken = false
  for lane, list in pairs(ready) do
    local length = sliced(push, queue(lane), list)
    call('ZADD', K .. ':lanes', 'NX', NOW_US, lane)
    woken = woken or length == #list
  end
  if woken then tell('ready ' .. tag()) end
end
local function ready_lanes(limit) return call('ZRANGE', K .. ':lanes', 0, limit - 1) end
local function ready_first(lane, limit)
  return call('LRANGE', queue(lane), 0, limit - 1), call('LLEN', queue(lane))
end

-- Takes the first n of `length` away; the lane goes behind the others, or away when empty.
local function ready_pop(lane, n, length, turn)
  if n == length then
    call('ZREM', K .. ':lanes', lane)
  else
    call('ZADD', K .. ':lanes', 'XX', NOW_US + turn, lane)
  end
  if n > 0 then call('LTRIM', queue(lane), n, -1) end
end
