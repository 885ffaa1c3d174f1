-- Dead letters, by time of death.
local function dead_add(locs)
  for _, loc in ipairs(locs) do call('ZADD', KEY.dead, NOW, loc) end
  if #locs > 0 then earliest('dead_at', NOW) end
end
local function dead_first(retention, limit)
  return call('ZRANGE', KEY.dead, '-inf', NOW - retention, 'BYSCORE', 'LIMIT', 0, limit)
end
local function dead_remove(locs)
  if #locs == 0 then return end
  sliced('ZREM', KEY.dead, locs)
  set('dead_at', first_score(KEY.dead))
end
