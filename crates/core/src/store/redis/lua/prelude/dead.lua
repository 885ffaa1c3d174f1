-- Dead letters, by time of death.
local function dead_add(loc) call('ZADD', K .. ':dead', NOW, loc) end
local function dead_remove(list) sliced('ZREM', K .. ':dead', list) end
local function dead_first(retention, limit)
  return call('ZRANGE', K .. ':dead', '-inf', NOW - retention, 'BYSCORE', 'LIMIT', 0, limit)
end
