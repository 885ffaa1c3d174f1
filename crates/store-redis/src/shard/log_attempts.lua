-- log_attempts: records attempts in the logs of their jobs. No job is touched.
-- KEYS  shard
-- ARGV  keep (ms), cap (bytes); then per attempt: locator; when the job was created (6 bytes), or the
--   receipt that it is reserved by (16 bytes, and one more if the lease must have run out); the attempt
--   as a log has it, with a receipt without number, time and duration
-- Returns how many logs have changed
-- Uses attempt_logs, records, shard.

-- Completes an attempt with number, time and duration; returns it after the time at which the job was created (6 bytes);
-- nothing if the receipt is not current, or its lease must have expired and has not. The job must have been read.
local function by_receipt(loc, proof, attempt)
  local raw, s = records[loc], states[loc]
  if not (raw and s and state.code(s) == RESERVED and state.receipt(s) == sub(proof, 1, 16)) then return end
  if #proof > 16 and state.deadline(s) > NOW then return end
  local at = min(floor(read('>I8', proof) / 1000), NOW)
  local took = pack('>I4', min(NOW - at, 4294967295))
  return jobs.created(raw, s), sub(attempt, 1, 2) .. sub(s, 9, 12) .. six(at) .. took .. sub(attempt, 17)
end

-- Whether to record an attempt although `old` may be the log of another job with the same key. The log belongs to the
-- job that has not ended, else to the later one: an attempt may be recorded late. The job must have been read.
local function counts(loc, created, old)
  if not old or sub(old, 1, 6) == created then return true end
  if records[loc] then return jobs.created(records[loc], states[loc]) == created end
  return read('>I6', created) > read('>I6', old)
end

function scripts.log_attempts(args)
  shard.begin()
  local keep, room = tonumber(args[1]), tonumber(args[2]) / 3
  local locs, by_receipts = {}, {}
  for i = 3, #args, 3 do
    locs[#locs + 1] = args[i]
    if #args[i + 1] > 6 then by_receipts[#by_receipts + 1] = args[i] end
  end
  jobs.load(by_receipts)
  local found, places = attempt_logs.find(locs)
  local unsure = {}
  for i = 3, #args, 3 do
    local loc, created = args[i], args[i + 1]
    if #created == 6 and found[loc] and sub(found[loc], 1, 6) ~= created then unsure[#unsure + 1] = loc end
  end
  jobs.load(unsure)
  if NOW - fields.attempts_at >= keep / 2 then attempt_logs.next_segment() end

  local written, moved, is_first, changed = {}, {}, fields.attempts_size == 0, 0
  for i = 3, #args, 3 do
    local loc, created, attempt = args[i], args[i + 1], args[i + 2]
    if #created > 6 then created, attempt = by_receipt(loc, created, attempt) end
    local old, log = found[loc], nil
    if created and counts(loc, created, old) then
      log = attempt_logs.with(old and sub(old, 1, 6) == created and old or created, attempt, room)
    end
    -- A log that stays without attempts is not written: the limit is too low even for one attempt.
    if log and log ~= old and #log > 6 then
      local size = attempt_logs.cost(log)
      local before = places[loc] == fields.attempts_segment and attempt_logs.cost(old) or 0
      if fields.attempts_size + size - before > room then
        attempt_logs.write(written, keep, is_first)
        attempt_logs.next_segment()
        written, is_first, before = {}, true, 0
      end
      if old and places[loc] < fields.attempts_segment then append(moved, places[loc], loc) end
      local n = #written
      written[n + 1], written[n + 2] = loc, log
      found[loc], places[loc] = log, fields.attempts_segment
      shard.set('attempts_size', fields.attempts_size + size - before)
      changed = changed + 1
    end
  end
  attempt_logs.write(written, keep, is_first)
  for segment, gone in pairs(moved) do
    if segment > fields.attempts_segment - 3 then sliced('HDEL', KEY.attempts .. segment, gone) end
  end
  shard.close()
  return changed
end
