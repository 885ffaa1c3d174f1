-- Lanes in turn, and the first entries of their queues.
local function ready_loc(entry) return sub(entry, 1, 12) end
local function ready_match(entry, h) return h and state(h) == READY and sub(h, 7, 12) == sub(entry, 13) end
local function ready_lanes(limit) return call('ZRANGE', K .. ':lanes', 0, limit - 1) end

-- The first entries of a lane, and one more if there is one.
local function ready_first(lane, limit) return call('LRANGE', queue(lane), 0, limit) end

-- Takes the first n away; the lane goes behind the others, or away when nothing is left.
local function ready_pop(lane, n, all, turn)
  if all then
    call('ZREM', K .. ':lanes', lane)
  else
    call('ZADD', K .. ':lanes', 'XX', NOW_US + turn, lane)
  end
  if n > 0 then call('LTRIM', queue(lane), n, -1) end
end
