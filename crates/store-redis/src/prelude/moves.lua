-- Moves of one job by its locator, for reschedule, run and revive. Each call has a token, which stays in the job
-- state, so that a repeated call is recognised whatever has happened to the job meanwhile.
-- Uses dead_letters, due_index, events, lanes, order, ready, records, shard, tombs.
local moves = {}

-- Reads a job. Returns its record, job state and code; nil, nil, nil and the answer if it has no record: 409 and its
-- tombstone, or {} if it is unknown.
function moves.look(loc)
  local raw, s, tomb = tombs.find(loc)
  if raw then return raw, s, due_index.code(loc, raw, s) end
  return nil, nil, nil, tomb and {409, tomb} or {}
end

-- Returns the answer of a move that changes nothing: 200 if the job is as wanted, 409 if its state forbids it.
function moves.unchanged(loc, code, is_as_wanted)
  return jobs.described(is_as_wanted and 200 or 409, code, records[loc], states[loc])
end

-- Begins a call with a token. Returns record, job state and code of the job; and the answer, if the job has no record or
-- the call is repeated.
function moves.begin(loc, token)
  shard.begin()
  order.promote_due()
  local raw, s, code, answer = moves.look(loc)
  if s and state.move_token(s) == token then answer = moves.unchanged(loc, code, true) end
  return raw, s, code, answer
end

-- Makes a delayed or dead job ready, due now, and returns the answer. `from` is the code that it had, `s` the job state
-- to which due time and token are added.
function moves.make_ready(loc, from, s, token)
  local raw, old, due = records[loc], states[loc], six(NOW)
  local lane = record.lane(raw)
  ready.add(lane, due_index.entry(loc, due))
  jobs.put(loc, state.with_move(state.with_due(s, NOW), token, due))
  ready.save('RPUSH')
  lanes.move(lane, from, READY, 1)
  jobs.save()
  if from == DELAYED then due_index.remove(loc, raw, old) else dead_letters.remove({dead_letters.entry(loc, lane)}) end
  events.promoted(loc, lane, from)
  shard.close()
  return jobs.described(200, READY, raw, states[loc])
end
