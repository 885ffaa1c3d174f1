-- Dead letters, by time of death.
local function dead_add(locs)
  for _, loc in ipairs(locs) do call('ZADD', K .. ':dead', NOW, loc) end
end
local function dead_remove(locs) sliced('ZREM', K .. ':dead', locs) end
local function dead_first(retention, limit)
  return call('ZRANGE', K .. ':dead', '-inf', NOW - retention, 'BYSCORE', 'LIMIT', 0, limit)
end
