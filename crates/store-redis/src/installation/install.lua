-- The installation's row: the settings that are fixed at the first start, its id, a loss of accepted jobs that has to be
-- accepted, the accepted ones, a text that changes with each acknowledged loss, and the key of lane ids, which keeps
-- callers from finding two lanes with one id.
--
-- The id is a text that is made with the row and is not repeated: a process that knows another one has been
-- prepared for data that is gone. A loss is named after the run of the server in which it was noticed, its run_id.

-- Beside the row, `keep_done` has the times for which processes keep tombstones (ms), by when one was last seen with it.

-- For how long a process counts as seen (ms), and how often that is recorded (ms).
local SEEN_FOR, NOTED_EVERY = 30000, 5000
-- How many accepted losses are remembered, so that accepting one can be repeated.
local ACCEPTED = 16
-- The fields of the row.
local LAYOUT, SHARDS, ID, LOST_RUN, LOST_JOBS, ACCEPTED_LOSSES, LAST_LOSS, LANE_KEY =
  'layout', 'shards', 'id', 'lost_run', 'lost_jobs', 'accepted_losses', 'last_loss', 'lane_key'

local function row() return K .. ':install' end

-- Returns how many jobs the accepted loss of a run had; nil if no loss in that run was accepted.
local function accepted(losses, run)
  return tonumber(string.match(' ' .. (losses or ''), ' ' .. run .. ':(%d+)'))
end

-- Records a loss in a run of a server, in place of one in another run, unless a loss in this run was accepted. The
-- largest number of jobs that a process knows of counts.
local function note_loss(run, jobs)
  local lost = call('HMGET', row(), LOST_RUN, LOST_JOBS, ACCEPTED_LOSSES)
  if accepted(lost[3], run) then return end
  local known = lost[1] == run and tonumber(lost[2]) or 0
  call('HSET', row(), LOST_RUN, run, LOST_JOBS, max(known, jobs))
end

-- Returns a text that is not repeated.
local function unique() return string.format('%s%.0f', server_run(), NOW_US) end

local function keep_done() return K .. ':keep_done' end

-- Returns the shortest time (ms) for which a process keeps tombstones, 0 if none was seen; and whether one that keeps them
-- for `keep` (ms, as text) was recorded of late.
local function seen_keep_done(keep)
  local seen, shortest, is_noted = call('ZRANGE', keep_done(), NOW - SEEN_FOR, '+inf', 'BYSCORE', 'WITHSCORES'), nil, false
  for i = 1, #seen, 2 do
    shortest = min(shortest or tonumber(seen[i]), tonumber(seen[i]))
    local at = tonumber(seen[i + 1])
    if seen[i] == keep then is_noted = at <= NOW and at + NOTED_EVERY > NOW end
  end
  return shortest or 0, is_noted
end

-- Records that a process keeps tombstones for `keep` (ms, as text), at most every NOTED_EVERY, and forgets times without
-- a process. Returns the shortest of all.
local function note_keep_done(keep)
  local shortest, is_noted = seen_keep_done(keep)
  if is_noted then return shortest end
  call('ZADD', keep_done(), NOW, keep)
  call('ZREMRANGEBYSCORE', keep_done(), '-inf', NOW - SEEN_FOR)
  -- Removes those recorded before the clock was set back.
  call('ZREMRANGEBYSCORE', keep_done(), string.format('(%.0f', NOW), '+inf')
  return (seen_keep_done(keep))
end

local function read_row() return call('HMGET', row(), LAYOUT, SHARDS, ID, LOST_RUN, LOST_JOBS, LANE_KEY, LAST_LOSS) end

-- Returns the answer with the data of the row that every process needs.
local function described()
  if not NOW_US then tick() end
  local stored = read_row()
  return {stored[1], stored[2], stored[3] or '', stored[4] or '', tonumber(stored[5] or 0), run_id(), stored[6] or '',
    stored[7] or '', NOW_US, (seen_keep_done()), call('HGETALL', row())}
end

-- install: makes the row at the first start, and checks it later. Allowed when memory is full, so that a process that
--   starts then can drain. The row of another layout stays as it is.
-- KEYS  installation
-- ARGV  layout version, shard count, the id that the caller saw last or '', 1 if a loss has to be accepted by hand, a
--   random key for lane ids if there is none, the last id that the caller saw without a loss that had to be accepted,
--   or '', for how long the caller keeps tombstones (ms)
-- Returns {layout version, shard count, id, run_id of a loss that is not accepted or '', its jobs, run_id of the server, key
--   of lane ids, a text that changes with each loss that was taken note of, the server's time in us, the shortest time
--   for which a process keeps tombstones (ms), the whole row}
function scripts.install(args)
  tick()
  local stored = call('HMGET', row(), LAYOUT, ID)
  local layout, id = stored[1], stored[2]
  if layout and layout ~= args[1] then return described() end
  note_keep_done(args[7])
  if not layout then
    id = unique()
    -- One command, so that the row is never incomplete.
    call('HSET', row(), LAYOUT, args[1], SHARDS, args[2], ID, id, LANE_KEY, args[5])
  end
  -- While a loss has to be accepted, the former data may come back. Whether it has all jobs is shown by the counts of its
  -- shards.
  local is_known = args[3] == id or args[6] == id or args[6] == ''
  if args[4] == '1' and not is_known then note_loss(run_id(), 0) end
  return described()
end

-- note_keep_done: records for how long the caller keeps tombstones.
-- KEYS  installation
-- ARGV  for how long (ms)
-- Returns the shortest time for which a process keeps tombstones (ms)
function scripts.note_keep_done(args)
  tick()
  return note_keep_done(args[1])
end
-- It uses nothing of what `start` empties.
fast.note_keep_done = scripts.note_keep_done

-- lose: records that accepted jobs are missing in a shard.
-- KEYS  installation
-- ARGV  the run_id of the shard's server, how many in all shards as far as the caller knows, the id that the caller saw
--   last
-- Returns what install returns. Nothing is recorded in a row with another id
function scripts.lose(args)
  if call('HGET', row(), ID) == args[3] then note_loss(args[1], tonumber(args[2])) end
  return described()
end

-- take_back: removes a loss, because all jobs that the caller missed are there again. Others that miss some record it.
-- KEYS  installation
-- ARGV  its run_id
-- Returns what install returns
function scripts.take_back(args)
  if call('HGET', row(), LOST_RUN) == args[1] then call('HDEL', row(), LOST_RUN, LOST_JOBS) end
  return described()
end

-- note_forgotten: records that a process has acknowledged lost jobs that need not be accepted.
-- KEYS  installation
-- ARGV  none
-- Returns what install returns
function scripts.note_forgotten()
  tick()
  call('HSET', row(), LAST_LOSS, unique())
  return described()
end

-- accept_loss: accepts a loss that was noticed.
-- KEYS  installation
-- ARGV  its run_id
-- Returns {1, run_id, jobs} if it is accepted, now or before; {0, run_id of the loss that waits or '', its jobs}
function scripts.accept_loss(args)
  local lost = call('HMGET', row(), LOST_RUN, LOST_JOBS, ACCEPTED_LOSSES)
  local before = accepted(lost[3], args[1])
  if before then return {1, args[1], before} end
  if lost[1] ~= args[1] then return {0, lost[1] or '', tonumber(lost[2] or 0)} end
  local losses, n = {lost[1] .. ':' .. lost[2]}, 1
  for one in string.gmatch(lost[3] or '', '%S+') do
    if n == ACCEPTED then break end
    n = n + 1
    losses[n] = one
  end
  tick()
  call('HSET', row(), ACCEPTED_LOSSES, concat(losses, ' '), LAST_LOSS, unique())
  call('HDEL', row(), LOST_RUN, LOST_JOBS)
  return {1, lost[1], tonumber(lost[2])}
end
