-- Logs of jobs' attempts: a hash per segment, from locator to log. The current segment and the two before it are read.
-- A segment ends after half of `keep`, or before it exceeds a third of `cap` bytes. Then the oldest of the three is
-- removed, so the logs never exceed `cap` bytes. A log moves to the current segment when an attempt is added.
--
-- A log is the time at which the job was created (6 bytes), and at most 20 attempts by number, each preceded by
-- its length (2). An attempt is number (4), time (6), duration (4), status (2), the lengths of the error and of
-- the name of who made it (1 each), these two texts, and the start of the response.
-- Uses shard.
local attempt_logs = {}

-- Returns the most memory in bytes that a log takes: Redis rounds its bytes up by a quarter at most, and the hash's
-- entry takes less than 96.
function attempt_logs.cost(log) return floor(#log * 5 / 4) + 96 end

-- Returns the logs of jobs, and the segments that they are in, both by locator. The log in the latest segment counts.
function attempt_logs.find(locs)
  local found, places = {}, {}
  local now = fields.attempts_segment
  for s = now, max(now - 2, 0), -1 do
    for i, log in ipairs(fetch(KEY.attempts .. s, locs)) do
      local loc = locs[i]
      if log and not found[loc] then found[loc], places[loc] = log, s end
    end
  end
  return found, places
end

-- Returns the log with one more attempt, in its place by number, or the same log if it has that number already, or has
-- 20 later ones. The oldest attempts are removed if there are more than 20, or the log would cost more than `room` bytes.
function attempt_logs.with(log, attempt, room)
  local number, starts, at, place = read('>I4', attempt, 3), {}, 7, nil
  while at < #log do
    local this = read('>I4', log, at + 2)
    if this == number then return log end
    if not place and this > number then place = at end
    starts[#starts + 1] = at
    at = at + 2 + read('>I2', log, at)
  end
  place = place or at
  local from = 7
  if #starts >= 20 then
    if place == 7 then return log end
    from = starts[#starts - 18] or at
  end
  local with = sub(log, 1, 6) .. sub(log, from, place - 1) .. attempt .. sub(log, place)
  while #with > 6 and attempt_logs.cost(with) > room do
    with = sub(with, 1, 6) .. sub(with, 9 + read('>I2', with, 7))
  end
  return with
end

-- Begins a new segment, and removes the oldest one off the main thread.
function attempt_logs.next_segment()
  shard.write({attempts_segment = fields.attempts_segment + 1, attempts_at = NOW})
  shard.set('attempts_size', 0)
  call('UNLINK', KEY.attempts .. (fields.attempts_segment - 3))
end

-- Writes logs (locator, log, …) into the current segment. With `is_first`, the first ones of a segment, sets when the
-- segment expires: after 1.5 times `keep` (ms) and a minute from its start.
function attempt_logs.write(written, keep, is_first)
  local key = KEY.attempts .. fields.attempts_segment
  sliced('HSET', key, written)
  if is_first and #written > 0 then
    call('PEXPIREAT', key, fields.attempts_at + keep + floor(keep / 2) + 60000)
  end
end
