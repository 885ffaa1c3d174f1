-- Who holds the shard, and what its carrier needs to know before it sleeps.
local function holder() return call('GET', K .. ':lock') or '' end
local function fenced(epoch) return string.match(holder(), '^%d+') ~= epoch end
local function hold(epoch, carrier) call('SET', K .. ':lock', epoch .. ' ' .. carrier) end

-- {due, lease, dead} in ms from now, -1 for none. It also writes `next`, so that earlier
-- moments are told.
local function rest(floor, retention)
  local function wait(key, add)
    local head = call('ZRANGE', K .. key, 0, 0, 'WITHSCORES')
    return head[2] and math.max(0, tonumber(head[2]) + add - NOW) or -1
  end
  local waits = {wait(':turns', 0), wait(':leases', 0), wait(':dead', retention)}
  local till = floor
  for _, w in ipairs(waits) do if w >= 0 and w < till then till = w end end
  call('SET', K .. ':next', NOW + till)
  return waits
end
