-- settle_receipts: settle, by receipts alone: what a consumer, or the carrier in its place,
--   says of jobs that were reserved for pull.
-- KEYS  shard
-- ARGV  keep (ms), cap (tombstones), 1 when only leases that have run out count; then per job:
--   locator, receipt (16 bytes), and the word: kind, delay (6 bytes, ms), the lengths of the
--   error and of the reason, and these
-- Returns per job 1 applied, 2 replayed, 4 stale
local SETTLE = {'next', 'segment', 'segment_at', 'segment_was', 'segment_size', 'forgotten_early',
  'delayed', 'ready', 'reserved', 'done', 'dead', 'cancelled', 'slot', 'dead_at', 'lanes', 'topics'}
-- A batch of more jobs is not looked through for each that is settled: the carrier does later.
local FEW = 16 * 12

-- The word as an outcome. A lease's number tells when it began.
local function outcome(word, raw, held)
  local at = min(floor(read('>I8', held) / 1000), NOW)
  local last = six(at) .. '\0\0' .. pack('>I4', min(NOW - at, 4294967295)) .. sub(word, 8)
  return char(byte(word), is_external(raw) and 1 or 0) .. sub(word, 2, 7) .. last
end

local function one(loc, held, word, only_over, dead)
  local raw, r, lease, is_finish = records[loc], runs[loc], sub(held, 1, 8), byte(word) == COMPLETE
  if not (raw and r) then
    local grave = not raw and tomb_get(loc)
    if not grave or tomb_lease(grave) ~= lease then return STALE end
    -- Only a finish repeats what has ended as done.
    return (tomb_state(grave) == DONE) == is_finish and REPLAYED or STALE
  end
  if state(r) ~= RESERVED or receipt(r) ~= held then
    return not is_finish and settled(r) == lease and REPLAYED or STALE
  end
  if only_over and deadline(r) > NOW then return STALE end
  -- No word was said by a lease that ran out, so none by it is a repetition.
  if only_over then lease = settled(r) end
  return apply(loc, tomb_of(raw, r, DONE, lease), outcome(word, raw, held), lane_of(raw), lease, dead)
end

-- The batches of these numbers that have no reserved job left.
local function over(numbers)
  local found, others = {}, {}
  local batches = fetch(KEY.batches, numbers)
  for i = 1, #numbers do
    local batch = batches[i]
    for _, loc in ipairs(batch and #batch <= FEW and batch_locs(batch) or {}) do
      if runs[loc] == nil then others[#others + 1] = loc end
    end
  end
  load_runs(others)
  for i, number in ipairs(numbers) do
    local batch, left = batches[i], false
    for _, loc in ipairs(batch and batch_locs(batch) or {}) do
      local r = runs[loc]
      left = left or #batch > FEW or r and state(r) == RESERVED and lease_number(r) == number
    end
    if batch and not left then found[#found + 1] = number end
  end
  return found
end

function edges.settle_receipts(args)
  begin(SETTLE)
  local locs, answers, dead, numbers, known = {}, {}, {}, {}, {}
  for i = 4, #args, 3 do locs[#locs + 1] = args[i] end
  load(locs)
  for i = 4, #args, 3 do
    local answer, number = one(args[i], args[i + 1], args[i + 2], args[3] == '1', dead), sub(args[i + 1], 1, 8)
    answers[#answers + 1] = answer
    if answer == APPLIED and not known[number] then
      known[number] = true
      numbers[#numbers + 1] = number
    end
  end
  local empty, untold = over(numbers), outbox.entries(dead)

  save_schedule()
  save_ready('LPUSH')
  wake_takers()
  deaths.add(dead)
  outbox.add(untold)
  save_tombs(tonumber(args[1]), tonumber(args[2]))
  save()
  save_drops()
  batches_drop(empty)
  close()
  return answers
end
