-- Lanes in turn, and the first entries of their queues.
local function ready_lanes(limit) return call('ZRANGE', KEY.lanes, 0, limit - 1) end

-- The first entries of a lane, and one more if there is one.
local function ready_first(lane, limit) return call('LRANGE', queue(lane), 0, limit) end

-- Takes the first n away; the lane goes behind the others, or away when nothing is left.
local function ready_pop(lane, n, all, turn)
  if all then
    call('ZREM', KEY.lanes, lane)
    call('UNLINK', queue(lane))
  else
    call('ZADD', KEY.lanes, 'XX', NOW_US + turn, lane)
    if n > 0 then call('LTRIM', queue(lane), n, -1) end
  end
end
