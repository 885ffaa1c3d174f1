-- The waiter of a shard: a notifier that takes due jobs itself, so that no carrier has to make them ready first.
--
-- A notifier whose reserve finds no job registers if no other is registered. While its registration lasts, each of its
-- answers says when the next job is due, an earlier job is announced to it, and its reserve at that time makes the due
-- jobs ready and reserves them. The carrier leaves due jobs to it for GRACE ms; if the carrier finds one after that, it
-- ends the registration. A reserve that leaves due jobs behind ends it too. shard_fields.rs has the same rule for
-- carriers, which read the fields by a plain command.
-- Uses due, shard.

-- For how long (ms) a carrier leaves due jobs to the waiter.
waiter.GRACE = 20
waiter.GRACE_US = whole(waiter.GRACE * 1000)
-- How long (ms) a registration lasts, and from when on a reserve renews it.
local LASTS, RENEW = 15000, 8000
-- How far ahead (ms) the next look is planned if no job is due: no further than a carrier does.
local LONGEST = 5000

-- Whether a notifier is registered. A registration from before the clock was set back does not count.
function waiter.exists() return fields.waits_until > NOW and fields.waits_until <= NOW + LASTS end
function waiter.is(number) return fields.waiter == number and waiter.exists() end

-- Renews the registration of a notifier, or registers it if nobody else is and it `may_begin`. Returns whether it is
-- registered, whether it was before, and whether the fields have changed.
function waiter.register(number, may_begin)
  local till = fields.waits_until
  local was = till > NOW and till <= NOW + LASTS
  if was and fields.waiter ~= number or not (was or may_begin) then return false, false, false end
  if was and till > NOW + RENEW then return true, true, false end
  fields.waiter, fields.waits_until = number, NOW + LASTS
  return true, was, true
end

-- Returns when the first scheduled lane is due (ms), if it is, and if the waiter is still in time for it; nil otherwise.
function waiter.in_time(scheduled)
  local at = waiter.exists() and tonumber(scheduled[2])
  if at and at <= NOW and at + waiter.GRACE > NOW then return at end
end

-- Returns when a carrier makes jobs ready that are due at a time (ms); 0 if that is 0 for never.
function waiter.promote_at(at)
  return at > 0 and waiter.exists() and not due.is_slot_near() and at + waiter.GRACE or at
end

-- Ends the registration. The carrier is woken when the next job is due.
function waiter.stop()
  shard.set('waits_until', 0)
  shard.wake_carrier()
end

-- Returns when the next job is due (ms) by the field `next`, or an earlier time; nil if nothing is due by then.
function waiter.known_due() return fields.next % 1 == 0 and fields.next or nil end
-- Returns the time (us) after which the waiter is to reserve again if the next job is due at `at`, or nil.
function waiter.due_in(at) return until_us(at or NOW + 2 * LONGEST) end

-- Plans the carrier's next look, if the next job of the sorted lanes is due at `at` (ms), or nil. The time ends with a half
-- if nothing is due by then. A carrier that was called for something else stays called.
function waiter.plan(at)
  if shard.is_carrier_called() then return end
  local till = NOW + LONGEST - 0.5
  if at and at < till then till = at end
  if fields.slot > 0 then till = min(till, (fields.slot - 1) * WIDTH) end
  shard.set('next', max(till, NOW))
end
