-- Records and job states: their formats, and reading, changing, writing and removing them.
--
-- A record is a job as it was submitted. It is kept in `pool`, and written again only by a submit that takes the
-- job's place. It is due, created (6 bytes each), flags, timeout (4), content hash (8), lane (8), the id's length,
-- id, payload. With the flag COMPRESSED the body in the payload is compressed, and the last four bytes of the payload
-- are its size as sent. A large payload has a key of its own; then the record has the flag EXTERNAL, and in the place
-- of the payload the size of the body as sent, 0 if it is not compressed, and the size of the payload (4 each). A submit
-- that may take a job's place has a token: its record has the flag TOKEN, the token (8) before the payload, and the flag
-- AT_ONCE if the job was due at once. With the flag TAGGED there are the tags before the payload, after their length
-- (2), with a space between them. A job of an ordered topic has the flag NUMBERED, and its number (6) before the payload.
-- The flag FIRING is that of the job of a schedule.
--
-- A job state is what has happened to a job since. The first delivery or the first move by name creates it. Its
-- stored key is ':states'. It is the state's code, flags, due (6, 0 for the record's), attempts, failures (4 each),
-- leases lost in a row, lease and its bits (8 each), deadline (6), the last settled lease (8), created (6, 0 for the
-- record's), the last failed attempt (6, 2, 4), the lengths of its error and of the reason, and these. A job that was
-- moved by its name has the last move behind them: its token (8), and the due time by which it made the job ready, or
-- 0 (6). A job in a generation after its first has the start of that generation behind the move, which may be zeros:
-- the shard's last lease (8) and the job's attempts (4) then.
--
-- In these files `raw` is a packed record, `s` a packed job state, and `code` the code of a state.
-- Uses archive, events, order, shard, tag_index.
local RECORD, STATE = 34, 67
local COMPRESSED, EXTERNAL, TOKEN, AT_ONCE, NUMBERED, FIRING, TAGGED = 1, 2, 4, 8, 16, 32, 64
-- The flags of a job state; the second: a push lease ran out unsettled in this generation of the job.
local CANCEL_REQUESTED, LEASE_LOST = 1, 2
local NO_LEASE, NO_TIME, NO_ATTEMPT = string.rep('\0', 8), string.rep('\0', 6), string.rep('\0', 14)

-- `whole` returns the record, or false if it is missing or too short.
local record = {}
function record.whole(raw)
  return raw and #raw >= RECORD and #raw >= RECORD + byte(raw, RECORD) and raw
end
function record.is_external(raw) return bit.band(byte(raw, 13), EXTERNAL) ~= 0 end
function record.hash(raw) return sub(raw, 18, 25) end
function record.lane(raw) return sub(raw, 26, 33) end
-- Returns the position at which the payload begins.
function record.payload_at(raw)
  local flags, at = byte(raw, 13), RECORD + byte(raw, RECORD) + 1
  if flags < TOKEN then return at end
  if bit.band(flags, TOKEN) ~= 0 then at = at + 8 end
  if flags >= TAGGED then at = at + 2 + read('>I2', raw, at) end
  if bit.band(flags, NUMBERED) ~= 0 then at = at + 6 end
  return at
end
-- Returns the number of a job of an ordered topic; zeros if it has none, which came before the order.
function record.number(raw)
  if bit.band(byte(raw, 13), NUMBERED) == 0 then return NO_TIME end
  local at = record.payload_at(raw)
  return sub(raw, at - 6, at - 1)
end
-- Returns a record from its flags on, with a number.
function record.with_number(rest, number)
  local at = record.payload_at(NO_LEASE .. '\0\0\0\0' .. rest) - 12
  return char(byte(rest) + NUMBERED) .. sub(rest, 2, at - 1) .. number .. sub(rest, at)
end
function record.id(raw) return sub(raw, RECORD + 1, RECORD + byte(raw, RECORD)) end
-- Returns the key by which an ordered topic orders the job.
function record.key(raw)
  local id = record.id(raw)
  if bit.band(byte(raw, 13), FIRING) ~= 0 then return id end
  return string.match(id, '^[^~]+') or id
end
-- Returns the record without its payload.
function record.head(raw) return sub(raw, 1, record.payload_at(raw) - 1) end
-- Returns the part of a record for an answer about the job: the fixed part, or, with tags, all before the payload.
function record.start(raw) return byte(raw, 13) < TAGGED and sub(raw, 1, RECORD) or record.head(raw) end
-- Returns the tags, or ''. `at` is the position of the id's length, if `raw` is only a part of the record.
function record.tags(raw, at)
  at = at or RECORD
  local flags = byte(raw, at - 21)
  if flags < TAGGED then return '' end
  local from = at + byte(raw, at) + (bit.band(flags, TOKEN) ~= 0 and 9 or 1)
  return sub(raw, from + 2, from + 1 + read('>I2', raw, from))
end
-- Returns the token of the submit, or ''. `at` is the position of the id's length, if `raw` is only a part of the record.
function record.token(raw, at)
  at = at or RECORD
  local flags, id = byte(raw, at - 21), byte(raw, at)
  return bit.band(flags, TOKEN) == 0 and '' or sub(raw, at + id + 1, at + id + 8)
end
-- Returns the bytes of a record and its payload as they are stored, also if the payload has a key of its own.
function record.size(raw) return record.is_external(raw) and #raw + read('>I4', raw, #raw - 3) or #raw end
-- Returns the same, and the size of the body as sent if it is compressed: what a reader of the job needs.
function record.weight(raw)
  local flags = byte(raw, 13) % TOKEN
  if flags == 0 then return #raw end
  local size = record.size(raw)
  return flags == EXTERNAL and size or size + read('>I4', raw, #raw - (flags == COMPRESSED and 3 or 7))
end

local state = {
  -- The state of a job that was never delivered.
  NEW = char(DELAYED) .. string.rep('\0', STATE - 1),
}
function state.whole(s) return s and #s >= STATE and s end
function state.code(s) return byte(s) end
function state.lost(s) return s and byte(s, 17) or 0 end
-- Whether an attempt was begun and never settled, so that it may still be in flight.
function state.maybe_in_flight(s)
  return s and (byte(s, 17) > 0 or bit.band(byte(s, 2), LEASE_LOST) ~= 0) or false
end
function state.receipt(s) return sub(s, 18, 33) end
function state.lease(s) return sub(s, 18, 25) end
function state.deadline(s) return (read('>I6', s, 34)) end
function state.settled(s) return s and sub(s, 40, 47) or NO_LEASE end
function state.is_cancel_requested(s) return bit.band(byte(s, 2), CANCEL_REQUESTED) ~= 0 end
function state.reason(s) return sub(s, STATE + 1 + byte(s, 66), STATE + byte(s, 66) + byte(s, 67)) end
-- Returns the position at which the reason ends.
local function texts_end(s) return STATE + byte(s, 66) + byte(s, 67) end
-- Returns the part after the reason: the last move and the start of the generation, or ''.
local function tail(s) return sub(s, texts_end(s) + 1) end
-- Returns the due time by which the last move made the job ready, or ''.
function state.due_of_move(s) return sub(s, texts_end(s) + 9, texts_end(s) + 14) end
function state.move_token(s) return sub(s, texts_end(s) + 1, texts_end(s) + 8) end
-- Returns the start of a generation that is not the first, or ''.
local function generation(s) return sub(s, texts_end(s) + 15) end
-- Whether a lease number belongs to a former generation of the job.
function state.is_of_former_generation(s, lease)
  local start = generation(s)
  return start ~= '' and read('>I8', lease) <= read('>I8', start)
end
-- Whether an attempt was made in this generation.
function state.was_tried(s)
  local start = generation(s)
  return read('>I4', s, 9) > (start ~= '' and read('>I4', start, 9) or 0)
end

function state.with_cancel(s) return char(byte(s), bit.bor(byte(s, 2), CANCEL_REQUESTED)) .. sub(s, 3) end
function state.with_deadline(s, at) return sub(s, 1, 33) .. six(at) .. sub(s, 40) end
function state.with_due(s, at) return sub(s, 1, 2) .. six(at) .. sub(s, 9) end
function state.with_settled(s, code, lease) return char(code) .. sub(s, 2, 39) .. lease .. sub(s, 48) end
-- Returns the job state with one more attempt, reserved under a new lease. `stamp` is receipt and deadline.
function state.with_lease(s, stamp)
  return char(RESERVED) .. sub(s, 2, 8) .. pack('>I4', read('>I4', s, 9) + 1) .. sub(s, 13, 17) .. stamp .. sub(s, 40)
end
-- Returns the job state with one attempt less, because the last one was not begun.
function state.without_attempt(s)
  return sub(s, 1, 8) .. pack('>I4', max(read('>I4', s, 9), 1) - 1) .. sub(s, 13)
end
-- Returns the job state with a new code and one more lease lost in a row.
function state.with_loss(s, code)
  return char(code, bit.bor(byte(s, 2), LEASE_LOST)) .. sub(s, 3, 16) .. char(byte(s, 17) + 1) .. sub(s, 18)
end
function state.with_reason(s, why)
  return sub(s, 1, 66) .. char(#why) .. sub(s, 68, STATE + byte(s, 66)) .. why .. tail(s)
end
-- Returns the job state with one more failure and no lost leases. `last` is the failed attempt and the reason, packed as
-- at the end of a job state.
function state.with_failure(s, last)
  return sub(s, 1, 12) .. pack('>I4', read('>I4', s, 13) + 1) .. '\0' .. sub(s, 18, 53) .. last .. tail(s)
end
function state.with_move(s, token, due)
  return sub(s, 1, texts_end(s)) .. token .. due .. generation(s)
end
-- Returns the state of a dead job that starts over, without failures, losses, reason; the last failed attempt stays.
function state.revived(s)
  return char(DELAYED, bit.band(byte(s, 2), LEASE_LOST)) .. sub(s, 3, 12) .. string.rep('\0', 5) .. sub(s, 18, 66) .. '\0'
    .. sub(s, STATE + 1, STATE + byte(s, 66)) .. tail(s)
end
-- Returns the state of a waiting job whose record was replaced: its due time is that of the record.
function state.replaced(s)
  local own = sub(s, 1, 2) .. NO_TIME .. sub(s, 9)
  return tail(s) == '' and own or state.with_move(own, state.move_token(s), NO_TIME)
end
-- Returns the job state of a new generation, which begins after this many attempts (4 bytes) and the shard's last lease.
-- `s` is the job state of the former generation, if there is one: its move token stays.
function state.of_new_generation(s, attempts, lease)
  local token = s and state.move_token(s) or ''
  return char(DELAYED, 0) .. NO_TIME .. attempts .. string.rep('\0', STATE - 12)
    .. (token == '' and NO_LEASE or token) .. NO_TIME .. pack('>I8', lease) .. attempts
end

-- Jobs by locator, as this call has read or changed them; false if there is none.
local jobs = {}
local records, states
-- Changes that are not written yet: job states, locators of records to remove, and keys of their payloads.
local writes, gone, unlinks

function jobs.start()
  records, states, writes = {}, {}, {}
  gone, unlinks = {}, {}
end

-- Discards the jobs that were read, so that they are read again.
function jobs.discard() records, states, writes = {}, {}, {} end

-- Reads records and job states. A job whose record or state is too short counts as missing, so that it does not block
-- others. A job state without its record is ignored.
function jobs.load(locs)
  local found, raws = fetch(KEY.states, locs), fetch(KEY.pool, locs)
  for i = 1, #locs do
    local loc, raw, s = locs[i], record.whole(raws[i]), found[i]
    if s and #s < STATE then raw = false end
    records[loc], states[loc] = raw, raw and s
  end
end

-- Reads one job. Returns its record and its job state.
function jobs.get(loc)
  jobs.load({loc})
  return records[loc], states[loc]
end

-- Reads the jobs that this call has not read yet.
function jobs.load_new(locs)
  local new, n = {}, 0
  for i = 1, #locs do
    if states[locs[i]] == nil then
      n = n + 1
      new[n] = locs[i]
    end
  end
  jobs.load(new)
end

-- Reads job states alone, for jobs that were delivered before and whose records do not matter.
function jobs.load_states(locs)
  local found = fetch(KEY.states, locs)
  for i = 1, #locs do states[locs[i]] = state.whole(found[i]) end
end

-- Return a job's due and creation time, as six bytes: from its state if it has them, else from the record.
function jobs.due(raw, s)
  local own = s and sub(s, 3, 8)
  return own and own ~= NO_TIME and own or sub(raw, 1, 6)
end
function jobs.created(raw, s)
  local own = s and sub(s, 48, 53)
  return own and own ~= NO_TIME and own or sub(raw, 7, 12)
end

-- Returns an answer about a job: a status, the code of its state, its job state or '', and the start of its record.
function jobs.described(status, code, raw, s) return {status, code, s or '', record.start(raw)} end

function jobs.put(loc, s)
  states[loc] = s
  local n = #writes
  writes[n + 1], writes[n + 2] = loc, s
end
-- Writes the job states that `put` has collected.
function jobs.save()
  if #writes == 0 then return end
  sliced('HSET', KEY.states, writes)
  shard.commit()
end

-- Collects the removal of a job, of its tags, and of its payload if that is external. `save_removed` writes it. The record
-- of a job of an ordered topic must have been read.
function jobs.remove(loc, external)
  local raw = records[loc]
  if raw and order.is_used() then order.leave(loc, raw, states[loc]) end
  if raw and byte(raw, 13) >= TAGGED then tag_index.leave(loc, raw) end
  gone[#gone + 1] = loc
  states[loc], records[loc] = false, false
  if external then unlinks[#unlinks + 1] = KEY.body .. loc end
end
-- Removes records, then job states and tags, last payloads, of which it renames those that the archive outbox keeps.
function jobs.save_removed()
  events.know()
  tag_index.know()
  if #gone > 0 then
    sliced('HDEL', KEY.pool, gone)
    sliced('HDEL', KEY.states, gone)
    shard.commit()
  end
  tag_index.save_removed()
  for _, key in ipairs(unlinks) do
    local new_key = archive.new_key(key)
    if new_key then call('RENAME', key, new_key) else call('UNLINK', key) end
  end
end
