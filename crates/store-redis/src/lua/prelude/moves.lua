-- Moves of one job by its name, as reschedule, run and revive make them. Each call brings a
-- token, which stays in the job's run, so that its repetition is known whatever has become of
-- the job meanwhile.
local moves = {
  fields = {'next', 'segment', 'slot', 'delayed', 'ready', 'dead', 'dead_at'},
  -- The run of a job that was never handed over.
  untried = char(DELAYED) .. string.rep('\0', RUN - 1),
}

-- Record, run and state of a job; without the record nil, nil, nil, and the answer. `begin` must
-- have read what it looks at.
function moves.look(loc)
  load({loc})
  local raw, r = records[loc], runs[loc]
  if raw then return raw, r, state_of(loc, raw, r) end
  local tomb = tomb_get(loc)
  return nil, nil, nil, tomb and {409, tomb} or {}
end

-- The answer where nothing is done: that it is as it was to be, or that it cannot be.
function moves.left(loc, st, is_right)
  return described(is_right and 200 or 409, st, records[loc], runs[loc])
end

-- How a call with a token begins: record, run and state of the job; and the answer, where it is
-- unknown or the call is repeated.
function moves.start(loc, token)
  begin(moves.fields)
  local raw, r, st, answer = moves.look(loc)
  if r and sub(mark(r), 1, 8) == token then answer = moves.left(loc, st, true) end
  return raw, r, st, answer
end

-- The run of a dead job that begins again: no failure, no lost lease, no reason; the last failed
-- attempt stays to be seen.
function moves.revived(r)
  return char(DELAYED, 0) .. sub(r, 3, 12) .. string.rep('\0', 5) .. sub(r, 18, 66) .. '\0'
    .. sub(r, RUN + 1, RUN + byte(r, 66))
end

-- The run with another mark.
function moves.marked(r, token, due)
  return sub(r, 1, RUN + byte(r, 66) + byte(r, 67)) .. token .. due
end

-- The job is due now, and ready. `from` is its state, `r` the run that it goes on with.
function moves.make_ready(loc, from, r, token)
  local raw, old, due = records[loc], runs[loc], six(NOW)
  append(ready_for, lane_of(raw), entry_of(loc, due))
  save_ready('RPUSH')
  wake_takers()
  put(loc, moves.marked(with_due(r, NOW), token, due))
  save()
  if from == DELAYED then unschedule(loc, raw, old) else deaths.remove({deaths.entry(loc, lane_of(raw))}) end
  move(lane_of(raw), from, READY, 1)
  events.promoted(loc, lane_of(raw))
  close()
  return described(200, READY, raw, runs[loc])
end
