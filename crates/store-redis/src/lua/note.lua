-- note: attempts go into the logs of their jobs. No edge: no job is touched.
-- KEYS  shard
-- ARGV  keep (ms), cap (bytes); then per attempt: locator; when the job was created (6 bytes),
--   or the receipt that it is reserved by (16 bytes, and one more where the lease must have run
--   out); the attempt as a log has it, by receipt without number, time and duration
-- Returns how many logs have changed

-- When the job was created and the attempt, of a job that is reserved by a receipt; nothing
-- where the receipt is not current.
local function by_receipt(loc, proof, attempt)
  local raw, r = records[loc], runs[loc]
  if not (raw and r and state(r) == RESERVED and receipt(r) == sub(proof, 1, 16)) then return end
  if #proof > 16 and deadline(r) > NOW then return end
  local at = min(floor(read('>I8', proof) / 1000), NOW)
  local took = pack('>I4', min(NOW - at, 4294967295))
  return created_six(raw, r), sub(attempt, 1, 2) .. sub(r, 9, 12) .. six(at) .. took .. sub(attempt, 17)
end

-- Whether a note of a job counts where there is a log of another one of its name. The log is that of
-- the job that has not ended, where there is one, else that of the later one: a note may be late. The
-- job must have been looked for.
local function counts(loc, created, old)
  if not old or sub(old, 1, 6) == created then return true end
  if records[loc] then return created_six(records[loc], runs[loc]) == created end
  return read('>I6', created) > read('>I6', old)
end

function edges.note(args)
  begin(logs.FIELDS)
  local keep, room = tonumber(args[1]), tonumber(args[2]) / 3
  local locs, held = {}, {}
  for i = 3, #args, 3 do
    locs[#locs + 1] = args[i]
    if #args[i + 1] > 6 then held[#held + 1] = args[i] end
  end
  load(held)
  local found, places = logs.find(locs)
  local unsure = {}
  for i = 3, #args, 3 do
    local loc, created = args[i], args[i + 1]
    if #created == 6 and found[loc] and sub(found[loc], 1, 6) ~= created then unsure[#unsure + 1] = loc end
  end
  load(unsure)
  if NOW - shard.attempts_at >= keep / 2 then logs.next_segment() end

  local written, moved, is_first, changed = {}, {}, shard.attempts_size == 0, 0
  for i = 3, #args, 3 do
    local loc, created, attempt = args[i], args[i + 1], args[i + 2]
    if #created > 6 then created, attempt = by_receipt(loc, created, attempt) end
    local old, log = found[loc], nil
    if created and counts(loc, created, old) then
      log = logs.with(old and sub(old, 1, 6) == created and old or created, attempt, room)
    end
    -- Nothing but when the job was created: the room is too small for one attempt.
    if log and log ~= old and #log > 6 then
      local size = logs.cost(log)
      local before = places[loc] == shard.attempts_segment and logs.cost(old) or 0
      if shard.attempts_size + size - before > room then
        logs.write(written, keep, is_first)
        logs.next_segment()
        written, is_first, before = {}, true, 0
      end
      if old and places[loc] < shard.attempts_segment then append(moved, places[loc], loc) end
      local n = #written
      written[n + 1], written[n + 2] = loc, log
      found[loc], places[loc] = log, shard.attempts_segment
      set('attempts_size', shard.attempts_size + size - before)
      changed = changed + 1
    end
  end
  logs.write(written, keep, is_first)
  for segment, gone in pairs(moved) do
    if segment > shard.attempts_segment - 3 then sliced('HDEL', KEY.attempts .. segment, gone) end
  end
  close()
  return changed
end
