-- Attempts of jobs: a hash per segment, from locator to log; the current one and the two
-- before it are looked at. A segment ends after half of `keep`, or when it would hold more
-- than a third of `cap` bytes; then the oldest of the three goes, so there are never more
-- than `cap`. A job that has an attempt more is moved to the current one.
--
-- A log is when the job was created (6), and at most 20 attempts by number, each behind its
-- length (2): number (4), time (6), duration (4), status (2), the lengths of error and of who
-- made it (1 each), these, and the start of the answer.
local logs = {FIELDS = {'attempts_segment', 'attempts_at', 'attempts_size'}}

-- What a log takes of Redis's memory at most: its bytes are rounded up by a quarter at most,
-- and the entry of the hash has less than the rest.
function logs.cost(log) return floor(#log * 5 / 4) + 96 end

-- The logs of jobs by locator, and the segments they are in. What is found in a later
-- segment counts.
function logs.find(locs)
  local found, places = {}, {}
  local now = shard.attempts_segment
  for s = now, max(now - 2, 0), -1 do
    for i, log in ipairs(fetch(KEY.attempts .. s, locs)) do
      local loc = locs[i]
      if log and not found[loc] then found[loc], places[loc] = log, s end
    end
  end
  return found, places
end

-- With one attempt more, in its place by number. One that is there already is the same told
-- again. The oldest go that are too many, or do not fit into `room`.
function logs.with(log, attempt, room)
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
  while #with > 6 and logs.cost(with) > room do
    with = sub(with, 1, 6) .. sub(with, 9 + read('>I2', with, 7))
  end
  return with
end

-- The segment is over. What goes is freed off the main thread.
function logs.next_segment()
  set('attempts_segment', shard.attempts_segment + 1)
  set('attempts_at', NOW)
  set('attempts_size', 0)
  call('UNLINK', KEY.attempts .. (shard.attempts_segment - 3))
end

-- Writes logs (locator, log, …) into the current segment. It goes by itself where nothing is
-- noted any more.
function logs.write(written, keep, is_first)
  local key = KEY.attempts .. shard.attempts_segment
  sliced('HSET', key, written)
  if is_first and #written > 0 then
    call('PEXPIREAT', key, shard.attempts_at + keep + floor(keep / 2) + 60000)
  end
end
