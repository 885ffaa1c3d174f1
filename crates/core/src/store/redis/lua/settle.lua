#!lua flags=allow-oom
-- settle: reserved -> done (complete), delayed (retry), dead (bury), or ready or delayed
--   (release, without or with a delay).
-- KEYS  shard
-- ARGV  keep (ms), cap (tombstones), lateness ("bucket:count ... max:us", or ''), then per
--   outcome, packed: locator, lease number, receipt bits, kind, delay (ms), and the failed
--   attempt with its reason as a head keeps them
-- Returns per outcome 1 applied, 2 replayed, 3 a late success that was applied, 4 stale
open('next', 'segment', 'segment_at', 'segment_was', 'segment_size', 'forgotten_early',
  'delayed', 'ready', 'reserved', 'done', 'dead', 'cancelled')
local COMPLETE, RETRY, BURY = 1, 2, 3
local APPLIED, REPLAYED, LATE, STALE = 1, 2, 3, 4
local due, released, dead, freed, undead, undue = {}, {}, {}, {}, {}, {}

local function delay(o) return (read('>I6', o, 30)) end

local function settle(loc, h, st, lease)
  move(RESERVED, st, 1)
  put(loc, with_settled(h, st, lease))
end

local function later(loc, h, o, lease)
  local at, topic = NOW_UP + delay(o), topic_of(loc)
  append(due, topic, at)
  append(due, topic, loc)
  settle(loc, with_due(h, at), DELAYED, lease)
end

local function apply(loc, h, o, lease)
  local kind = byte(o, 29)
  freed[#freed + 1] = loc
  if kind == COMPLETE then
    finish(loc, h, DONE, lease)
  elseif has(h, CANCEL_REQUESTED) then
    finish(loc, h, CANCELLED, lease)
  elseif kind == RETRY then
    later(loc, with_failure(h, sub(o, 36)), o, lease)
  elseif kind == BURY then
    dead[#dead + 1] = loc
    settle(loc, with_failure(h, sub(o, 36)), DEAD, lease)
  elseif delay(o) > 0 then
    later(loc, h, o, lease)
  else
    append(released, lane_of(loc), ready_entry(loc, h))
    settle(loc, h, READY, lease)
  end
  return APPLIED
end

-- A receipt that is no longer current: only a success still counts, and only for this
-- very job (a lease older than the record belongs to an earlier job of the same id).
local function late(loc, h, o, lease)
  local st = state(h)
  local over = st == DEAD and reason(h) ~= 'lost'
  if byte(o, 29) ~= COMPLETE or over or read('>I8', lease) < arrived(loc, h) * 1000 then return STALE end
  if st == DEAD then undead[#undead + 1] = loc end
  if st == DELAYED then append(undue, topic_of(loc), loc) end
  if st == RESERVED then freed[#freed + 1] = loc end
  finish(loc, h, DONE, lease)
  return LATE
end

local locs, others, answers, counted = {}, {}, {}, false
for i = 4, #ARGV do locs[i - 3] = sub(ARGV[i], 1, 12) end
load_heads(locs)
-- A job that simply is done needs its head alone.
for i, loc in ipairs(locs) do
  local h = heads[loc]
  if byte(ARGV[i + 3], 29) ~= COMPLETE or not (h and state(h) == RESERVED) then others[#others + 1] = loc end
end
load(others)
for i, loc in ipairs(locs) do
  local h, o = heads[loc], ARGV[i + 3]
  local lease = sub(o, 13, 20)
  if not h then
    local tomb = tomb_get(loc)
    answers[i] = tomb and tomb_lease(tomb) == lease and REPLAYED or STALE
  elseif state(h) == RESERVED and receipt(h) == sub(o, 13, 28) then
    answers[i] = apply(loc, h, o, lease)
  elseif settled(h) == lease then
    answers[i] = REPLAYED
  else
    answers[i] = late(loc, h, o, lease)
  end
  -- A call that is only a replay has told its lateness before.
  counted = counted or answers[i] == APPLIED or answers[i] == LATE
end

due_add(due)
ready_add(released, 'LPUSH')
dead_add(dead)
save_tombs(tonumber(ARGV[1]), tonumber(ARGV[2]))
save()
save_drops()
lease_remove(freed)
dead_remove(undead)
for topic, list in pairs(undue) do
  for _, loc in ipairs(list) do due_remove(topic, loc) end
end
if counted then write_lateness(ARGV[3]) end
close()
return answers
