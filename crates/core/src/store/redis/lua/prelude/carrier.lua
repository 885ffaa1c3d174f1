-- Who holds the shard, and what its carrier needs to know before it sleeps.
local function fenced(epoch) return shard.epoch ~= tonumber(epoch) end
local function hold(epoch, carrier)
  set('epoch', epoch)
  set('carrier', carrier)
end

-- {due, lease, dead} in ms from now, -1 for none. It also sets `next`, so that earlier
-- moments are told.
local function rest(floor, retention)
  local function wait(key, add)
    local head = call('ZRANGE', K .. key, 0, 0, 'WITHSCORES')
    return head[2] and math.max(0, tonumber(head[2]) + add - NOW) or -1
  end
  local waits = {wait(':turns', 0), wait(':leases', 0), wait(':dead', retention)}
  local till = floor
  for _, w in ipairs(waits) do if w >= 0 and w < till then till = w end end
  set('next', NOW + till)
  return waits
end
