-- renew: reserved -> reserved with a later deadline, or the same if the lease may not last longer. The time at which
--   its batch is examined stays; recover then sets the next one.
-- KEYS  shard
-- ARGV  locator, receipt (16 bytes), length (ms), the longest time since the lease was granted (ms) or nothing
-- Returns the deadline (ms), or -1 if the receipt is not current, or the lease has expired and may not last longer
-- Uses events, leases, records, shard.
function scripts.renew(args)
  shard.begin()
  local loc = args[1]
  jobs.load_states({loc})
  local s = states[loc]
  if not (s and state.code(s) == RESERVED and state.receipt(s) == args[2]) then return -1 end
  local deadline, within = NOW_UP + tonumber(args[3]), tonumber(args[4])
  if within then deadline = min(deadline, leases.granted(state.lease(s)) + within) end
  deadline = max(state.deadline(s), deadline)
  if deadline <= NOW then return -1 end
  if events.is_logged then
    local raw = jobs.get(loc)
    if raw then events.step(loc, record.lane(raw), RESERVED, RESERVED) end
  end
  jobs.put(loc, state.with_deadline(s, deadline))
  jobs.save()
  return deadline
end
