-- The outbox: deaths that are still to be told, by when. An entry has all that its notice needs, so
-- nothing that becomes of the job afterwards matters. `tell_at` of the shard is when the first is to
-- be told, 0 for none.
--
-- An entry is the time of death (6 bytes), the lane in words and the run (each behind its length, 2
-- bytes), and the record: that is without the body, which is not told.
local outbox = {}

-- What comes before the body in a payload: as its first two bytes say.
function outbox.payload(loc, raw)
  local key = is_external(raw) and KEY.body .. loc
  local payload = key and call('GETRANGE', key, 0, 1) or sub(raw, RECORD + 1 + byte(raw, RECORD))
  if #payload < 2 then return '' end
  local size = 2 + read('>I2', payload)
  return key and call('GETRANGE', key, 0, size - 1) or sub(payload, 1, size)
end

-- What is to be told of jobs that die in this call, by their entries among the dead letters.
-- `runs` has them as they will be. Nothing may have been written yet.
function outbox.entries(dead)
  local untold, absent, lanes = {}, {}, {}
  if #dead == 0 then return untold end
  -- Most calls have no deaths, so `tell_at` is not among the fields that they read.
  shard.tell_at = first_score(KEY.outbox)
  for i, entry in ipairs(dead) do
    local loc = sub(entry, 1, 12)
    lanes[i] = sub(entry, 13)
    if not records[loc] then absent[#absent + 1] = loc end
  end
  rows_load(lanes)
  for i, raw in ipairs(fetch(KEY.pool, absent)) do records[absent[i]] = record(raw) end
  for i, entry in ipairs(dead) do
    -- Without the words it cannot be told, but that can be seen.
    local loc, words = sub(entry, 1, 12), lane_words(lanes[i]) or ''
    local raw, r = records[loc], runs[loc]
    if raw then
      local start = sub(raw, 1, RECORD + byte(raw, RECORD))
      untold[#untold + 1] = concat({six(NOW), pack('>I2', #words), words, pack('>I2', #r), r, start, outbox.payload(loc, raw)})
    end
  end
  return untold
end

function outbox.add(untold)
  if #untold == 0 then return end
  local scored = {}
  for i, entry in ipairs(untold) do scored[2 * i - 1], scored[2 * i] = NOW, entry end
  sliced('ZADD', KEY.outbox, scored)
  earliest('tell_at', NOW)
  moment(NOW)
end
