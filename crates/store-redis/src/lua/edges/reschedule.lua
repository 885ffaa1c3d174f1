-- reschedule: delayed -> delayed at another time, or ready when that time has come.
-- KEYS  shard
-- ARGV  locator, token (8 bytes), due ("+ms" from now, or absolute ms)
-- Returns {200, state, job state, record's start} where it is done, now or by this token before; {409,
--   state, job state or '', record's start} or {409, tombstone} where the state forbids it; {} unknown
function edges.reschedule(args)
  local loc, token = args[1], args[2]
  local raw, s, code, answer = moves.begin(loc, token)
  if answer then return answer end
  if code ~= DELAYED then return moves.unchanged(loc, code, false) end

  local at, new = arrivals.due_time(args[3]), s or state.NEW
  if at <= NOW then return moves.make_ready(loc, code, new, token) end
  local due_six, lane = six(at), record.lane(raw)
  jobs.put(loc, state.with_move(state.with_due(new, at), token, NO_TIME))
  -- For the same time the entry stays.
  if due_six == jobs.due(raw, s) then
    jobs.save()
  else
    schedule.add(lane, at, schedule.entry(loc, due_six))
    schedule.save()
    jobs.save()
    schedule.remove(loc, raw, s)
  end
  shard.close()
  return jobs.described(200, DELAYED, raw, states[loc])
end
