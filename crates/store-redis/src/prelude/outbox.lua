-- The outbox: pending notices of jobs that died or are done, by the time at which they are to be published. The field
-- `next_notice_at` is the first such time, 0 for none. An entry holds all data of a notice, so later changes of the job
-- do not matter.
--
-- An entry waits for LONGEST at most. An entry with a later time was stored before the clock was set back, and is due.
--
-- An entry is the time of the end (6 bytes), the answer of the receiver to a success, as the client has packed it, or
-- NO_ANSWER, the lane's name and the job state (each behind its length, 2 bytes), and the record without the body,
-- which a notice does not carry.
-- Uses lanes, records, shard.
local outbox = {
  -- How long a rejected notice waits at most (ms).
  LONGEST = 60000,
  NO_ANSWER = '\0\0',
}

-- Returns the µs until a notice with this time (ms, 0 for none) is due; -1 for none.
function outbox.wait(at)
  if at > NOW_UP + outbox.LONGEST then return 0 end
  return wait_us(at)
end

-- Returns the part of a job's payload before the body, whose length is in its first two bytes; '' if it is missing.
local function payload_start(loc, raw)
  local key = record.is_external(raw) and KEY.body .. loc
  local payload = key and call('GETRANGE', key, 0, 1) or sub(raw, record.payload_at(raw))
  if #payload < 2 then return '' end
  local size = 2 + read('>I2', payload)
  return key and call('GETRANGE', key, 0, size - 1) or sub(payload, 1, size)
end

local function entry_of(loc, lane, raw, s, answer)
  -- Without the lane's name the notice cannot be published, but the entry stays visible.
  local name = lanes.name(lane) or ''
  return concat({
    six(NOW), answer, pack('>I2', #name), name, pack('>I2', #s), s, record.head(raw), payload_start(loc, raw),
  })
end

-- Returns the entries for jobs that die in this call, given by their entries among the dead letters, and for successes,
-- given as {locator, lane, job state, answer}. `states` must have the dead jobs as they will be. Must run before
-- anything is written.
function outbox.notices(dead, done)
  local notices, absent, names = {}, {}, {}
  if #dead + #done == 0 then return notices end
  -- Read only here, because in most calls no job dies.
  fields.next_notice_at = first_score(KEY.outbox)
  for i, entry in ipairs(dead) do
    local loc = sub(entry, 1, 12)
    names[i] = sub(entry, 13)
    if not records[loc] then absent[#absent + 1] = loc end
  end
  for i, raw in ipairs(fetch(KEY.pool, absent)) do records[absent[i]] = record.whole(raw) end
  local ended = {}
  for i, job in ipairs(done) do ended[i], names[#names + 1] = job[1], job[2] end
  shard.load_rows(names)
  for i, entry in ipairs(dead) do
    local loc = sub(entry, 1, 12)
    local raw = records[loc]
    if raw then notices[#notices + 1] = entry_of(loc, names[i], raw, states[loc], outbox.NO_ANSWER) end
  end
  -- Done jobs are no longer among the records of the call.
  for i, stored in ipairs(fetch(KEY.pool, ended)) do
    local loc, lane, s, answer = unpack(done[i])
    local raw = record.whole(stored)
    if raw then notices[#notices + 1] = entry_of(loc, lane, raw, s, answer) end
  end
  return notices
end

function outbox.add(notices)
  if #notices == 0 then return end
  local scored = {}
  for i, entry in ipairs(notices) do scored[2 * i - 1], scored[2 * i] = NOW, entry end
  sliced('ZADD', KEY.outbox, scored)
  shard.earliest('next_notice_at', NOW)
  shard.call_carrier()
end
