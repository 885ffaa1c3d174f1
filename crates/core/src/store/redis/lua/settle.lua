#!lua flags=allow-oom
-- settle: reserved -> done (complete), delayed (retry), dead (bury), or ready or delayed
--   (release, without or with a delay).
-- KEYS  shard
-- ARGV  keep (ms), cap (tombstones), lateness ("bucket:count ... max:us", or ''), then per
--   outcome, packed: locator, receipt bits, lease number, kind, delay (ms), sent at (ms),
--   status, duration (ms), error length, reason length, error, reason
-- Returns per outcome 1 applied, 2 replayed, 3 a late success that was applied, 4 stale
local COMPLETE, RETRY, BURY = 1, 2, 3
local APPLIED, REPLAYED, LATE, STALE = 1, 2, 3, 4
local due, released, dead, freed, undead, undue = {}, {}, {}, {}, {}, {}

local function outcome(raw)
  local loc, bits, lease, kind, delay, sent, status, ms, err, reason, at = read('>c12c8I8BI6I6I2I4BB', raw)
  return {loc = loc, bits = bits, lease = lease, kind = kind, delay = delay, sent = sent, status = status, ms = ms,
    err = sub(raw, at, at + err - 1), reason = sub(raw, at + err, at + err + reason - 1)}
end

local function failed(o, r)
  r.failures, r.lost = r.failures + 1, 0
  r.last_at, r.last_status, r.last_ms, r.err = o.sent, o.status, o.ms, o.err
end

local function settled(o, j, state)
  move(RESERVED, state)
  j.st, run(j).settled = state, o.lease
  put(o.loc, j)
end

local function later(o, j)
  j.due = NOW_UP + o.delay
  append(due, (names(j)), j.due, o.loc)
  settled(o, j, DELAYED)
end

local function apply(o, j)
  freed[#freed + 1] = o.loc
  if o.kind == COMPLETE then
    finish(o.loc, j, DONE, o.lease)
  elseif has(j, CANCEL_REQUESTED) then
    finish(o.loc, j, CANCELLED, o.lease)
  elseif o.kind == RETRY then
    failed(o, run(j))
    later(o, j)
  elseif o.kind == BURY then
    failed(o, run(j))
    run(j).reason = o.reason
    dead[#dead + 1] = o.loc
    settled(o, j, DEAD)
  elseif o.delay > 0 then
    later(o, j)
  else
    local topic, origin = names(j)
    append(released, lane_of(topic, origin), ready_entry(o.loc, j.due))
    settled(o, j, READY)
  end
  return APPLIED
end

-- A receipt that is no longer current: only a success still counts, and only for this
-- very job (a lease older than the record belongs to an earlier job of the same id).
local function late(o, j)
  local over = j.st == DEAD and run(j).reason ~= 'lost'
  if o.kind ~= COMPLETE or over or o.lease < j.created * 1000 then return STALE end
  if j.st == DEAD then undead[#undead + 1] = o.loc end
  if j.st == DELAYED then append(undue, (names(j)), o.loc) end
  if j.st == RESERVED then freed[#freed + 1] = o.loc end
  finish(o.loc, j, DONE, o.lease)
  return LATE
end

local outcomes, locs, answers, counted = {}, {}, {}, false
for i = 4, #ARGV do
  outcomes[i - 3] = outcome(ARGV[i])
  locs[i - 3] = outcomes[i - 3].loc
end
load(locs)
for i, o in ipairs(outcomes) do
  local j = get(o.loc)
  if not j then
    local tomb = tomb_get(o.loc)
    answers[i] = tomb and tomb.lease == o.lease and REPLAYED or STALE
  elseif j.st == RESERVED and run(j).lease == o.lease and run(j).bits == o.bits then
    answers[i] = apply(o, j)
  elseif run(j).settled == o.lease then
    answers[i] = REPLAYED
  else
    answers[i] = late(o, j)
  end
  -- A call that is only a replay has told its lateness before.
  counted = counted or answers[i] == APPLIED or answers[i] == LATE
end

due_add(due)
ready_add(released, 'LPUSH')
dead_add(dead)
save_tombs(tonumber(ARGV[1]), tonumber(ARGV[2]))
save()
lease_remove(freed)
dead_remove(undead)
for topic, list in pairs(undue) do
  for _, loc in ipairs(list) do due_remove(topic, loc) end
end
if counted then write_lateness(ARGV[3]) end
write_tally()
write_moment()
return answers
