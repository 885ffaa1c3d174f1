-- reschedule: delayed -> delayed at another time, or ready when that has come.
-- KEYS  shard
-- ARGV  locator, token (8 bytes), due ("+ms" from now, or absolute ms)
-- Returns {200, state, run, record's start} where it is done, now or by this token before;
--   {409, state, run or '', record's start} or {409, tombstone} where the state forbids it;
--   {} unknown
function edges.reschedule(args)
  local loc, token = args[1], args[2]
  local raw, r, st, answer = moves.start(loc, token)
  if answer then return answer end
  if st ~= DELAYED then return moves.left(loc, st, false) end

  local at, new = due_time(args[3]), r or moves.untried
  if at <= NOW then return moves.make_ready(loc, st, new, token) end
  local due, lane = six(at), lane_of(raw)
  put(loc, moves.marked(with_due(new, at), token, NO_TIME))
  -- The entry of the same time is the one that it has.
  if due == due_six(raw, r) then
    save()
  else
    schedule(lane, at, entry_of(loc, due))
    save_schedule()
    save()
    unschedule(loc, raw, r)
  end
  close()
  return described(200, DELAYED, raw, runs[loc])
end
