-- expire: dead and kept long enough -> gone.
-- KEYS  shard
-- ARGV  epoch, limit, floor (ms), retention (ms)
-- Returns {-1} fenced, or {expired, 0, waits in us...}
local EXPIRE = {'epoch', 'next', 'dead', 'purged', 'slot', 'lease_at', 'dead_at', 'tell_at', 'lanes', 'topics'}

function edges.expire(args)
  begin(EXPIRE)
  if is_fenced(args[1]) then return {-1} end
  local old = deaths.first(tonumber(args[4]), tonumber(args[2]))
  local expired = 0
  local locs = deaths.locs(old)
  load(locs)
  for _, loc in ipairs(locs) do
    local raw, r = records[loc], runs[loc]
    if raw and r and state(r) == DEAD then
      move(lane_of(raw), DEAD, nil, 1)
      drop(loc, is_external(raw))
      expired = expired + 1
    end
  end
  save_drops()
  count('purged', expired)
  deaths.remove(old)
  local waits = rest(tonumber(args[3]), tonumber(args[4]))
  close()
  return {expired, 0, unpack(waits)}
end
