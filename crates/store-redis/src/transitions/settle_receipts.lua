-- settle_receipts: settles jobs that were reserved for pull, by receipts alone: for a consumer, or for the carrier after
--   a lease has run out.
-- KEYS  shard
-- ARGV  keep (ms), cap (tombstones), 1 when only leases that have run out count; then per job: locator,
--   receipt (16 bytes), and the outcome, as outcomes.lua says
-- Returns per job 1 applied, 2 replayed, 4 stale
--
-- The rules differ from settle.lua: a late success is stale, and a complete repeats only a complete.
-- Uses leases, outcomes, records, shard, tombs.
local COMPLETE, APPLIED, REPLAYED, STALE = outcomes.COMPLETE, outcomes.APPLIED, outcomes.REPLAYED, outcomes.STALE
-- Only a batch of at most 16 jobs is examined after a settle; a larger one when its leases run out.
local FEW = 16 * 12

-- Completes the outcome by what the client does not know, and returns it: whether the payload is external, and the
-- attempt's begin and duration. The attempt begins when the lease was granted, which the lease's number tells.
local function with_attempt(outcome, raw, held)
  local at = min(floor(read('>I8', held) / 1000), NOW)
  local times = six(at) .. '\0\0' .. pack('>I4', min(NOW - at, 4294967295))
  return char(byte(outcome), record.is_external(raw) and 1 or 0) .. sub(outcome, 3, 8) .. times .. sub(outcome, 21)
end

local function settle_one(loc, held, outcome, only_expired, dead)
  local raw, s, lease, is_complete = records[loc], states[loc], sub(held, 1, 8), byte(outcome) == COMPLETE
  if not (raw and s) then
    local known = not raw and tombs.get(loc)
    if not known or tombs.lease(known) ~= lease then return STALE end
    return (tombs.state(known) == DONE) == is_complete and REPLAYED or STALE
  end
  if state.code(s) ~= RESERVED or state.receipt(s) ~= held then
    return not is_complete and state.settled(s) == lease and REPLAYED or STALE
  end
  if only_expired and state.deadline(s) > NOW then return STALE end
  -- A lease that has run out was not settled by its holder, so no later call repeats it.
  if only_expired then lease = state.settled(s) end
  return outcomes.apply(loc, tombs.of(raw, s, DONE, lease), with_attempt(outcome, raw, held), record.lane(raw), lease, dead, {})
end

function scripts.settle_receipts(args)
  shard.begin()
  local locs, answers, dead, applied, numbers, is_known = {}, {}, {}, {}, {}, {}
  for i = 4, #args, 3 do locs[#locs + 1] = args[i] end
  jobs.load(locs)
  for i = 4, #args, 3 do
    local answer, number = settle_one(args[i], args[i + 1], args[i + 2], args[3] == '1', dead), sub(args[i + 1], 1, 8)
    answers[#answers + 1] = answer
    if answer == APPLIED then
      applied[#applied + 1] = args[i]
      if not is_known[number] then
        is_known[number] = true
        numbers[#numbers + 1] = number
      end
    end
  end
  local over = leases.over(numbers, applied, FEW)
  outcomes.save(dead, {}, {}, args[1], args[2])
  leases.drop(over)
  shard.close()
  return answers
end
