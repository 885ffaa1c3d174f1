-- Who holds the shard, and what its carrier needs to know before it sleeps.
local function is_fenced(epoch) return shard.epoch ~= tonumber(epoch) end
local function hold(epoch, carrier)
  set('epoch', epoch)
  set('carrier', carrier)
end

-- From now to a time in ms, in us, so that no part of a millisecond is slept too long.
local function until_ms(at) return max(0, at * 1000 - NOW_US) end

-- {due, lease, dead, tell} in us from now, -1 for none. It also sets `next`, so that earlier
-- moments are told; what is to be told of deaths waits for no pass, so that does not count there.
-- `due_in` is where the first is known already.
local function rest(floor_ms, retention, due_in)
  local function wait(at) return at > 0 and until_ms(at) or -1 end
  local due = due_in
  if not due then
    due = wait(first_score(KEY.turns))
    local slot = shard.slot > 0 and until_ms((shard.slot - 1) * WIDTH) or -1
    if due < 0 or slot >= 0 and slot < due then due = slot end
  end
  local dead = shard.dead_at > 0 and wait(shard.dead_at + retention) or -1
  local waits = {due, wait(shard.lease_at), dead}
  local till = floor_ms * 1000
  for _, w in ipairs(waits) do if w >= 0 and w < till then till = w end end
  set('next', floor((NOW_US + till) / 1000))
  waits[4] = wait(shard.tell_at)
  return waits
end
