-- The carrier of a shard: the epoch under which a carrier holds the shard, and how long the carrier may sleep.
-- Uses leases, outbox, recurring, shard.
local carrier = {}

function carrier.is_fenced(epoch) return fields.epoch ~= tonumber(epoch) end
function carrier.hold(epoch, name)
  shard.set('epoch', tonumber(epoch))
  shard.put('carrier', name)
end

-- Returns the times until the next due job, lease, eviction, notice and firing of a schedule, in µs, -1 for none.
-- `due_in` is the first of them, if it is known. Also sets `next` to the earliest of the first three, at most
-- `max_sleep` (ms) from now; only earlier times wake the carrier. No pass handles notices and firings.
function carrier.waits(max_sleep, retention, due_in)
  -- No pass plans the next one further ahead than `max_sleep`, so a later plan was made before the clock was set back.
  if fields.next > NOW + max_sleep then recurring.look_at_all() end
  local due_wait = due_in
  if not due_wait then
    due_wait = wait_us(first_score(KEY.due_lanes))
    local slot = fields.slot > 0 and until_us((fields.slot - 1) * WIDTH) or -1
    if due_wait < 0 or slot >= 0 and slot < due_wait then due_wait = slot end
  end
  local eviction = fields.dead_at > 0 and wait_us(fields.dead_at + retention) or -1
  -- A time further ahead than any that is stored was stored before the clock was set back.
  local lease_wait = fields.lease_at > NOW + leases.LOOK_AGAIN and 0 or wait_us(fields.lease_at)
  local waits = {due_wait, lease_wait, eviction}
  local till = max_sleep * 1000
  for _, w in ipairs(waits) do if w >= 0 and w < till then till = w end end
  shard.set('next', floor((NOW_US + till) / 1000))
  waits[4], waits[5] = outbox.wait(fields.next_notice_at), wait_us(fields.next_firing_at)
  return waits
end
