#!lua flags=allow-oom
-- settle: reserved -> done (complete), delayed (retry), dead (bury), or ready or delayed
--   (release, without or with a delay).
-- KEYS  shard
-- ARGV  keep (ms), cap (tombstones), lateness ("bucket:count ..." and the maximum in ms, or '')
--   then per outcome: locator, receipt bits, lease number, kind, delay (ms), sent at (ms),
--   status, duration (ms), error length, reason length, error, reason (packed)
-- Returns per outcome 1 applied, 2 replayed, 3 a late success that was applied, 4 stale
local COMPLETE, RETRY, BURY, RELEASE = 1, 2, 3, 4
local APPLIED, REPLAYED, LATE, STALE = 1, 2, 3, 4
local keep, cap = tonumber(ARGV[1]), tonumber(ARGV[2])
local released, freed = {}, {}

local function outcome(raw)
  local o, at, err, reason = {}, nil, nil, nil
  o.loc, o.rand, o.lease, o.kind, o.delay, o.sent, o.status, o.ms, err, reason, at =
    unpack_('>c12c8I8BI6I6I2I4BB', raw)
  o.err, o.reason = sub(raw, at, at + err - 1), sub(raw, at + err, at + err + reason - 1)
  return o
end

local function failed(o, j)
  j.failures, j.lost = j.failures + 1, 0
  j.last_at, j.last_status, j.last_ms, j.err = o.sent, o.status, o.ms, o.err
end

local function later(o, j)
  move(RESERVED, DELAYED)
  j.st, j.settled, j.due = DELAYED, o.lease, NOW_UP + o.delay
  due_add({[(names(j))] = {j.due, o.loc}})
  put(o.loc, j)
end

local function apply(o, j)
  if o.kind == COMPLETE then
    finish(o.loc, j, DONE, o.lease, keep, cap)
  elseif has(j, CANCEL_REQUESTED) then
    finish(o.loc, j, CANCELLED, o.lease, keep, cap)
  elseif o.kind == RETRY then
    failed(o, j)
    later(o, j)
  elseif o.kind == BURY then
    failed(o, j)
    move(RESERVED, DEAD)
    j.st, j.settled, j.reason = DEAD, o.lease, o.reason
    dead_add(o.loc)
    put(o.loc, j)
  elseif o.delay > 0 then
    later(o, j)
  else
    move(RESERVED, READY)
    j.st, j.settled = READY, o.lease
    local topic, origin = names(j)
    append(released, lane_of(topic, origin), ready_entry(o.loc, j.due))
    put(o.loc, j)
  end
  freed[#freed + 1] = o.loc
  return APPLIED
end

-- A receipt that is no longer current: only a success still counts, and only for this
-- very job (a lease older than the record belongs to an earlier job of the same id).
local function late(o, j)
  local over = j.st == DEAD and j.reason ~= 'lost'
  if o.kind ~= COMPLETE or over or o.lease < j.created * 1000 then return STALE end
  if j.st == DEAD then dead_remove(o.loc) end
  if j.st == DELAYED then due_remove((names(j)), o.loc) end
  if j.st == RESERVED then freed[#freed + 1] = o.loc end
  finish(o.loc, j, DONE, o.lease, keep, cap)
  return LATE
end

local answers = {}
for i = 4, #ARGV do
  local o = outcome(ARGV[i])
  local j = get(o.loc)
  if not j then
    local tomb = tomb_get(o.loc)
    answers[#answers + 1] = tomb and tomb.lease == o.lease and REPLAYED or STALE
  elseif j.st == RESERVED and j.lease == o.lease and j.rand == o.rand then
    answers[#answers + 1] = apply(o, j)
  elseif j.settled == o.lease then
    answers[#answers + 1] = REPLAYED
  else
    answers[#answers + 1] = late(o, j)
  end
end
ready_add(released, 'LPUSH')
lease_remove(freed)
write_lateness(ARGV[3])
write_tally()
write_moment()
return answers
