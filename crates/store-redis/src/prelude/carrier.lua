-- The carrier of a shard: the epoch under which a carrier holds the shard, and how long the carrier may sleep.
-- Uses leases, outbox, recurring, shard, waiter.
local carrier = {}

function carrier.is_fenced(epoch) return fields.epoch ~= tonumber(epoch) end
function carrier.hold(epoch, name)
  shard.set('epoch', tonumber(epoch))
  shard.put('carrier', name)
end

-- Returns the times until the next due job, lease, eviction, notice and firing of a schedule, in µs, -1 for none; until a
-- due job is to be promoted, if it is left to the waiter for a while. `due_at` is when the next job is due (ms), 0 for
-- never, if that is known. Also sets `next` to the earliest of the first three, at most `max_sleep` (ms) from now; only
-- earlier times wake the carrier. It ends with a half if no job is due by then; else the waiter gets to know it. No pass
-- handles notices and firings.
function carrier.waits(max_sleep, retention, due_at)
  -- No pass plans the next one further ahead than `max_sleep`, so a later plan was made before the clock was set back.
  if fields.next > NOW + max_sleep then recurring.look_at_all() end
  if not due_at then
    due_at = first_score(KEY.due_lanes)
    local slot_at = (fields.slot - 1) * WIDTH
    if slot_at > 0 and (due_at == 0 or slot_at < due_at) then due_at = slot_at end
  end
  local eviction = fields.dead_at > 0 and wait_us(fields.dead_at + retention) or -1
  -- A time further ahead than any that is stored was stored before the clock was set back.
  local lease_wait = fields.lease_at > NOW + leases.LOOK_AGAIN and 0 or wait_us(fields.lease_at)
  local waits = {wait_us(due_at), lease_wait, eviction}
  local till = max_sleep * 1000
  for _, w in ipairs(waits) do if w >= 0 and w < till then till = w end end
  local is_due = due_at > 0 and due_at * 1000 <= NOW_US + till
  shard.set('next', floor((NOW_US + till) / 1000) - (is_due and 0 or 0.5))
  if is_due and waiter.exists() then shard.wake_carrier() end
  waits[1] = wait_us(waiter.promote_at(due_at))
  waits[4], waits[5] = outbox.wait(fields.next_notice_at), wait_us(fields.next_firing_at)
  return waits
end
