-- promote: delayed and due -> ready. Each due lane promotes at most its share of the limit. Sorts a part of the next
--   unsorted slot first, if its time is near. Leaves jobs to the waiter that are due for less than its grace. Only for the
--   carrier that has the shard.
-- KEYS  shard
-- ARGV  epoch, limit (jobs), longest sleep (ms), retention (ms)
-- Returns {} if another carrier has the shard, or {how many were promoted, 0, waits in us...}. Raises the error of a lane
--   that failed, after all other lanes
-- Uses carrier, due, due_index, lanes, ready, shard, waiter.
-- The pause (ms) between sorting two parts of a near slot.
local PAUSE = 10

-- Corrects the times at which lanes are due that were set behind others before the clock was set back. These lanes are
-- among the first, because all that was promoted since went before them.
local function correct_places(scored)
  for i = 1, #scored, 2 do
    local lane, score = scored[i], tonumber(scored[i + 1])
    local first = score > NOW and first_score(due_index.key(lane)) or 0
    if first > 0 and first < score then call('ZADD', KEY.due_lanes, first, lane) end
  end
end

function scripts.promote(args)
  -- The due index is read before `begin`, which then reads the rows of due lanes together with the fields.
  tick()
  local scheduled = due.first_scheduled()
  shard.begin((due.lanes(scheduled, NOW)))
  if carrier.is_fenced(args[1]) then return {} end
  local limit = tonumber(args[2])
  -- A pass plans the next one no later than this, so a later plan was made before the clock was set back.
  local was_set_back = fields.next > NOW + tonumber(args[3])
  if was_set_back then correct_places(scheduled) end
  local is_near = due.is_slot_near()
  local has_more = due.sort_slot(limit)
  if is_near or was_set_back then scheduled = due.first_scheduled() end
  local promoted, soon, failure = 0, waiter.in_time(scheduled), nil
  if not soon then
    promoted, soon, failure = due.promote(scheduled, limit, due.bound())
    if promoted > 0 then shard.set('waits_until', 0) end
  end

  ready.wake()
  local due_at = soon or 0
  if fields.slot > 0 then
    -- A near slot is sorted with pauses that leave the server to others, unless some of it is due.
    local is_due = fields.slot * WIDTH <= NOW
    local slot_at = has_more and (is_due and NOW or NOW + PAUSE) or (fields.slot - 1) * WIDTH
    if due_at == 0 or slot_at < due_at or is_due then due_at = slot_at end
  end
  local waits = carrier.waits(tonumber(args[3]), tonumber(args[4]), due_at)
  shard.close()
  if failure then raise(failure) end
  return {promoted, 0, unpack(waits)}
end

-- The common case: at most one lane is due, a push lane, no slot is near, nobody watches, and the clock was not set back.
function fast.promote(args)
  shard.open_whole()
  local max_sleep, retention = tonumber(args[3]), tonumber(args[4])
  local is_common = not carrier.is_fenced(args[1]) and fields.next <= NOW + max_sleep and fields.unusual < shard.NOTED
    and not due.is_slot_near()
  if not is_common then return nil end
  local scheduled = due.first_scheduled()
  local lane, following, n = scheduled[1], tonumber(scheduled[2]), 0
  local is_due = lane and following <= NOW and not waiter.in_time(scheduled)
  if is_due and (#scheduled > 2 or lanes.is_pull(lane)) then return nil end

  local row
  if is_due then
    row = call('HGET', KEY.shard, lane)
    local found
    found, following = due.first(lane, tonumber(args[2]), NOW)
    n = #found
    if n == 0 or not row then return nil end
    ready.start()
    ready.push(lane, found, 'RPUSH')
    due.pop(lane, n, following, NOW)
    fields.delayed, fields.ready, fields.waits_until = fields.delayed - n, fields.ready + n, 0
    row = lanes.counted(row, -n, n, 0)
  end
  local due_at, slot_at = following or 0, (fields.slot - 1) * WIDTH
  if slot_at > 0 and (due_at == 0 or slot_at < due_at) then due_at = slot_at end
  local waits = carrier.waits(max_sleep, retention, due_at)
  if is_due then shard.save(lane, row) else shard.save() end
  if is_due then ready.wake() end
  return {n, 0, unpack(waits)}
end
