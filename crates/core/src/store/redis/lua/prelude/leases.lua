-- Leases by deadline, and the number that every new one gets: it only grows, past a
-- fail-over that has lost the last numbers too.
local function lease_number()
  return math.max(tonumber(call('HGET', K .. ':counters', 'lease') or 0) + 1, NOW_US)
end
local function lease_numbered(last) call('HSET', K .. ':counters', 'lease', last) end
local function lease_first(limit)
  return call('ZRANGE', K .. ':leases', '-inf', NOW, 'BYSCORE', 'LIMIT', 0, limit)
end
local function lease_add(list) if #list > 0 then sliced('ZADD', K .. ':leases', list) end end
local function lease_remove(list) if #list > 0 then sliced('ZREM', K .. ':leases', list) end end
