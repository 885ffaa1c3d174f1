-- audit_mend: leads to jobs again that nothing led to. No edge: no job changes its state. Looks
-- again before it mends.
-- KEYS  shard
-- ARGV  'jobs', and then as for audit_confirm; 'lanes', and their ids; 'index', and members of it;
--   'runs', and locators of those without a record; 'moments'
-- Returns per job, lane, member or run 1 where it is mended now, 0 where there is nothing (any more) to
--   mend, 2 where nobody can; for moments how many
local FIELDS = {'next', 'slot', 'lease_at', 'dead_at', 'tell_at'}
local MOVED_ON, MENDED, NOBODY_CAN = 0, 1, 2

-- A batch that a reserved job is of, looked at no later than it was to be.
local function lease(loc, r)
  local number, batch = lease_number(r), audits.batch(r)
  local at = min(deadline(r), batch.at or deadline(r))
  call('ZADD', KEY.leases, at, number)
  if not audits.holds(batch, loc) then
    batch.locs = batch.locs .. loc
    batches_put({number, batch.locs})
  end
  batch.at = at
  earliest('lease_at', at)
  moment(at)
end

-- A job that waits, where its time says.
local function wait(loc, raw, r)
  local lane, due = lane_of(raw), due_six(raw, r)
  local at = read('>I6', due)
  -- Of a slot that is not in order nothing is ready.
  if at <= NOW and (was_ready_at_once(raw, r) or not is_far(at)) then
    append(ready_for, lane, entry_of(loc, due))
    return
  end
  schedule(lane, at, entry_of(loc, due))
  audits.lists[string.format('%.0f', floor(at / WIDTH))] = true
end

local mend = {}

-- Leads to a lost job again.
local function lead_to(loc, st)
  local raw, r = records[loc], runs[loc]
  if st == RESERVED then
    lease(loc, r)
  elseif st == DEAD then
    deaths.add({deaths.entry(loc, lane_of(raw))})
  elseif st == DELAYED or st == READY then
    wait(loc, raw, r)
  else
    return NOBODY_CAN
  end
  return MENDED
end

function mend.jobs(args)
  local locs, answers, lost = {}, {}, {}
  for i = 2, #args, 2 do locs[#locs + 1] = sub(args[i], 1, 12) end
  load(locs)
  audits.lists = {}
  -- What one of them is led to by may lead to the others too: all are judged first.
  for i, loc in ipairs(locs) do
    local what, st = audits.judge(loc, args[2 * i], tonumber(args[2 * i + 1]))
    lost[i] = what == 'lost' and st
  end
  for i, loc in ipairs(locs) do answers[i] = lost[i] and lead_to(loc, lost[i]) or MOVED_ON end
  save_schedule()
  save_ready('RPUSH')
  wake_takers()
  for slot in pairs(audits.lists) do
    if call('EXISTS', KEY.slot .. slot) == 1 then
      call('ZADD', KEY.slots, slot, slot)
      earliest('slot', tonumber(slot))
    end
  end
  return answers
end

function mend.lanes(args)
  local answers, lanes = {}, {unpack(args, 2)}
  audits.load_lanes(lanes)
  for i = 2, #args do
    local lane = args[i]
    local lacks = rows[lane] and audits.lacks(lane) or {}
    if lacks.ready then
      topics.free(lane)
      call('ZADD', is_pull(lane) and KEY.pulls or KEY.lanes, 'NX', NOW_US, lane)
      if is_pull(lane) then wake_consumers(lane) else is_woken = true end
    end
    if lacks.due then
      call('ZADD', KEY.turns, lacks.due, lane)
      moment(lacks.due)
    end
    answers[i - 1] = next(lacks) and 1 or 0
  end
  wake_takers()
  return answers
end

function mend.index(args)
  local answers, names = {}, {}
  for i = 2, #args do
    local topic = topic_in(args[i])
    names[i - 1] = #args[i] > #topic + 1 and sub(args[i], #topic + 2) or topics.field(topic)
  end
  rows_load(names)
  for i, name in ipairs(names) do
    local member = rows[name] and topics.unlisted(name)
    if member then topics.list(member) end
    answers[i] = member and 1 or 0
  end
  return answers
end

function mend.runs(args)
  local answers = {}
  for i = 2, #args do
    answers[i - 1] = call('HEXISTS', KEY.pool, args[i]) == 0 and call('HDEL', KEY.runs, args[i]) or 0
  end
  return answers
end

function mend.moments()
  local n = 0
  for name, at in pairs(audits.moments()) do
    set(name, at)
    -- A slot is put in order when its time is two slots away.
    moment(name == 'slot' and max(0, at - 1) * WIDTH or at)
    n = n + 1
  end
  return n
end

function edges.audit_mend(args)
  audits.begin(FIELDS)
  local answer = mend[args[1]](args)
  close()
  return answer
end
