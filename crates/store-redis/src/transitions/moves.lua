-- Moves of one job by its locator: reschedule, run and revive; purge is in purge.lua, cancel in cancel.lua. A job that
-- has ended, or is in a state that forbids the move, stays as it is.
--
-- All return {200, state, job state, record's start} if the move is done, now or earlier by the same token; {409,
-- state, job state or '', record's start} or {409, tombstone} if the state forbids it; {} if there is no such job.
-- Uses arrivals, due_index, events, moves, records, shard.

-- reschedule: delayed -> delayed at another time, or ready if that time has come.
-- KEYS  shard
-- ARGV  locator, token (8 bytes), due ("+ms" from now, or absolute ms)
-- Returns as above
function scripts.reschedule(args)
  local loc, token = args[1], args[2]
  local raw, s, code, answer = moves.begin(loc, token)
  if answer then return answer end
  if code ~= DELAYED then return moves.unchanged(loc, code, false) end

  local at, new = arrivals.due_time(args[3]), s or state.NEW
  if at <= NOW then return moves.make_ready(loc, code, new, token) end
  local due_six, lane = six(at), record.lane(raw)
  events.step(loc, lane, DELAYED, DELAYED)
  jobs.put(loc, state.with_move(state.with_due(new, at), token, NO_TIME))
  -- A job that was due at the same time keeps its entry.
  if due_six == jobs.due(raw, s) then
    jobs.save()
  else
    due_index.add(lane, at, due_index.entry(loc, due_six))
    due_index.save()
    jobs.save()
    due_index.remove(loc, raw, s)
  end
  shard.close()
  return jobs.described(200, DELAYED, raw, states[loc])
end

-- run: delayed -> ready, due now. A job that is ready or reserved stays as it is, which counts as done.
-- KEYS  shard
-- ARGV  locator, token (8 bytes)
-- Returns as above; the job state may be ''
function scripts.run(args)
  local loc, token = args[1], args[2]
  local _, s, code, answer = moves.begin(loc, token)
  if answer then return answer end
  if code ~= DELAYED then return moves.unchanged(loc, code, code == READY or code == RESERVED) end
  return moves.make_ready(loc, code, s or state.NEW, token)
end

-- revive: dead -> ready, due now. Failures and lost leases start from zero.
-- KEYS  shard
-- ARGV  locator, token (8 bytes)
-- Returns as above
function scripts.revive(args)
  local loc, token = args[1], args[2]
  local _, s, code, answer = moves.begin(loc, token)
  if answer then return answer end
  if code ~= DEAD then return moves.unchanged(loc, code, false) end
  return moves.make_ready(loc, code, state.revived(s), token)
end
