-- settle: reserved -> done (complete), delayed (retry), dead (bury), or ready or delayed
--   (release, without or with a delay).
-- A job must be there only once.
-- KEYS  shard
-- ARGV  keep (ms), cap (tombstones), lateness ("bucket:count ... max:us", or ''), how many
--   lanes, their ids, how many batches have no other job left, their numbers; then per group: 'complete' or 'other', lane id, receipt (16 bytes), how
--   many jobs; and per job: locator, the tombstone it will have as done; in an 'other' group
--   also the outcome: kind, 1 when the payload is external, delay (6 bytes, ms), and the
--   failed attempt with its reason as a run ends with them
-- Returns {} when all are applied, else per job 1 applied, 2 replayed, 3 a late success that
--   was applied, 4 stale
parts.SETTLE = {'next', 'segment', 'segment_at', 'segment_was', 'segment_size', 'forgotten_early',
  'delayed', 'ready', 'reserved', 'done', 'dead', 'cancelled', 'slot', 'dead_at', 'lanes', 'topics'}

-- The arguments behind the first `base`: lanes, batches that are over, where the groups begin.
function parts.told(args, base)
  local lanes, over, from = {}, {}, base + 5 + tonumber(args[base + 4])
  for i = base + 5, from - 1 do lanes[#lanes + 1] = args[i] end
  for i = from + 1, from + tonumber(args[from]) do over[#over + 1] = args[i] end
  return lanes, over, from + 1 + #over
end

-- All of the edge between `begin` and `close`.
function parts.settle(args, base, over, from)
  local locs, at = {}, from
  while at < #args do
    local step, n = args[at] == 'complete' and 2 or 3, tonumber(args[at + 3])
    for i = at + 4, at + 3 + step * n, step do locs[#locs + 1] = args[i] end
    at = at + 4 + step * n
  end
  load_runs(locs)

  local answers, dead, undead, undelayed = {}, {}, {}, {}
  local j, is_all, counted, told = 0, true, false, events.on
  at = from
  while at < #args do
    local is_complete, lane, held, n = args[at] == 'complete', args[at + 1], args[at + 2], tonumber(args[at + 3])
    local lease, step, plain, done = sub(held, 1, 8), is_complete and 2 or 3, nil, 0
    for i = at + 4, at + 3 + step * n, step do
      local loc, tomb, o = args[i], args[i + 1], not is_complete and args[i + 2]
      local r, answer = runs[loc], APPLIED
      if r and r == plain then
        -- The same run as the one before, of a first hand-over that simply is done.
        local b, g = #buried, #gone
        buried[b + 1], buried[b + 2], gone[g + 1] = loc, tomb, loc
        if told then events.completed(loc, lane, r) end
        done = done + 1
      elseif r and state(r) == RESERVED and receipt(r) == held then
        if is_complete and lost(r) == 0 then
          plain = r
          bury(loc, tomb, false)
          if told then events.completed(loc, lane, r) end
          done = done + 1
        else
          answer = apply(loc, tomb, o or char(COMPLETE, 0), lane, lease, dead)
        end
      elseif not r then
        local grave = tomb_get(loc)
        answer = grave and tomb_lease(grave) == lease and REPLAYED or STALE
      elseif settled(r) == lease then
        answer = REPLAYED
      else
        answer = overdue(loc, is_complete or byte(o) == COMPLETE, lease, undead, undelayed)
      end
      j = j + 1
      answers[j] = answer
      is_all = is_all and answer == APPLIED
      -- A call that is only a replay has told its lateness before.
      counted = counted or answer == APPLIED or answer == LATE
    end
    if done > 0 then
      move(lane, RESERVED, DONE, done)
    end
    at = at + 4 + step * n
  end

  local untold = outbox.entries(dead)
  for _, job in ipairs(undelayed) do unschedule(unpack(job)) end
  save_schedule()
  save_ready('LPUSH')
  wake_takers()
  deaths.add(dead)
  outbox.add(untold)
  save_tombs(tonumber(args[base + 1]), tonumber(args[base + 2]))
  save()
  save_drops()
  if is_all then batches_drop(over) end
  deaths.remove(undead)
  if counted then write_lateness(args[base + 3]) end
  return is_all and {} or answers
end

function edges.settle(args)
  local lanes, over, from = parts.told(args, 0)
  begin(parts.SETTLE, lanes)
  local answer = parts.settle(args, 0, over, from)
  close()
  return answer
end
