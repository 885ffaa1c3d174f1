-- Settles push leases: alone (settle), or followed by a reserve in the same call (exchange).
-- settle: reserved -> done (complete), delayed (retry), dead (bury), ready or delayed (release, without or with a delay),
--   or ready (return, of an attempt that was not begun). No job may occur twice in a call.
-- KEYS  shard
-- ARGV  numbers as doubles: keep (ms), cap (tombstones), the greatest lateness (us), and the number and the count of each
--   bucket of lateness; how many lanes, their ids, how many batches are settled as a whole, their names, how many batches have no other job left as far as the caller knows,
--   their names; then per group: 'complete' or 'other', lane id, receipt (16 bytes), how many jobs; and per job:
--   locator, the tombstone that it will have as done; in an 'other' group also the outcome, as outcomes.lua says
-- Returns {} when all are applied, else per job 1 applied, 2 replayed, 3 a late success that was applied, 4 stale
-- Uses archive, dead_letters, events, grants, lanes, lateness, leases, outcomes, records, shard, tombs.

-- Reads the arguments behind the first `base`. Returns the lanes, the batches that are settled as a whole, those whose
-- other jobs were settled before, and the index at which the groups begin.
function outcomes.settle_args(args, base)
  local at, lists = base + 2, {}
  for i = 1, 3 do
    local n, list = tonumber(args[at]), {}
    for j = 1, n do list[j] = args[at + j] end
    lists[i], at = list, at + n + 1
  end
  return lists[1], lists[2], lists[3], at
end

-- Does all of a settle between `shard.begin` and `shard.close`, and returns its answer.
function outcomes.settle(args, base, whole, over, from)
  local locs, at = {}, from
  while at < #args do
    local step, n = args[at] == 'complete' and 2 or 3, tonumber(args[at + 3])
    for i = at + 4, at + 3 + step * n, step do locs[#locs + 1] = args[i] end
    at = at + 4 + step * n
  end
  jobs.load_states(locs)

  local APPLIED, REPLAYED, LATE, COMPLETE = outcomes.APPLIED, outcomes.REPLAYED, outcomes.LATE, outcomes.COMPLETE
  local answers, dead, undead, undelayed, noted, plain_success = {}, {}, {}, {}, {}, char(COMPLETE, 0)
  local j, is_all, counts_lateness, is_watched, is_archived = 0, true, false, events.on, archive.is_attached()
  at = from
  while at < #args do
    local is_complete, lane, held, n = args[at] == 'complete', args[at + 1], args[at + 2], tonumber(args[at + 3])
    local lease, step, plain, done = sub(held, 1, 8), is_complete and 2 or 3, nil, 0
    for i = at + 4, at + 3 + step * n, step do
      local loc, tomb, o = args[i], args[i + 1], not is_complete and args[i + 2]
      local s, answer = states[loc], APPLIED
      if s and s == plain then
        -- Has the same job state as a job before, which was a first delivery and is done.
        local e, g = #ended, #gone
        ended[e + 1], ended[e + 2], gone[g + 1] = loc, tomb, loc
        if is_watched then events.completed(loc, lane, s) end
        if is_archived then archive.note(archive.DONE, loc, lane, s) end
        done = done + 1
      elseif s and state.code(s) == RESERVED and state.receipt(s) == held then
        if is_complete and not state.maybe_in_flight(s) then
          plain = s
          tombs.add(loc, tomb, false)
          if is_watched then events.completed(loc, lane, s) end
          if is_archived then archive.note(archive.DONE, loc, lane, s) end
          done = done + 1
        else
          answer = outcomes.apply(loc, tomb, o or plain_success, lane, lease, dead, noted)
        end
      elseif not s then
        local known = tombs.get(loc)
        answer = known and tombs.lease(known) == lease and REPLAYED or outcomes.STALE
      elseif state.settled(s) == lease then
        answer = REPLAYED
      else
        answer = outcomes.late_success(loc, o or plain_success, lease, undead, undelayed, noted)
      end
      j = j + 1
      answers[j] = answer
      is_all = is_all and answer == APPLIED
      -- The lateness of a call that only replays was counted before.
      counts_lateness = counts_lateness or answer == APPLIED or answer == LATE
    end
    if done > 0 then lanes.move(lane, RESERVED, DONE, done) end
    at = at + 4 + step * n
  end

  over = is_all and #over > 0 and leases.over(over, locs) or {}
  local keep, cap = read('<dd', args[base + 1])
  outcomes.save(dead, noted, undelayed, keep, cap)
  if is_all then leases.drop(whole) end
  leases.drop(over)
  dead_letters.remove(undead)
  if counts_lateness then lateness.add(args[base + 1]) end
  return is_all and {} or answers
end

function scripts.settle(args)
  local names, whole, over, from = outcomes.settle_args(args, 0)
  shard.begin(names)
  local answer = outcomes.settle(args, 0, whole, over, from)
  shard.close()
  return answer
end

-- The common case: first deliveries of one lane are done, whose batches end with them, while nobody watches and no
-- archive is attached. `plan` finds out whether a settle is that, from what it reads, and `apply` writes it.
outcomes.plain = {}
do
  local PLAIN = char(RESERVED, 0)
  local lane, row, names, locs, ends, n

  -- Returns the lane and the index at which the groups begin; nil if the arguments behind the first `base` cannot be those
  -- of the common case.
  function outcomes.plain.lane_of(args, base)
    if args[base + 2] ~= '1' then return nil end
    local at = base + 5 + tonumber(args[base + 4])
    if args[at] ~= '0' then return nil end
    return args[base + 3], at + 1
  end

  -- Returns whether the settle is the common one. `last` is the index of its last argument.
  function outcomes.plain.plan(args, base, last, from, its_lane, its_row)
    lane, row, names, locs, ends, n = its_lane, its_row, nil, {}, {}, 0
    if not row or fields.unusual >= shard.NOTED or tombs.begins_segment(read('<dd', args[base + 1])) then
      return false
    end
    local at = from
    while at < last do
      if args[at] ~= 'complete' or args[at + 1] ~= lane then return false end
      local stop = at + 3 + 2 * tonumber(args[at + 3])
      for i = at + 4, stop, 2 do
        n = n + 1
        locs[n], ends[2 * n - 1], ends[2 * n] = args[i], args[i], args[i + 1]
      end
      at = stop + 1
    end
    if n > 1000 or lanes.ends_with(row, n) and not lanes.is_resting(lane) then return false end
    local found = fetch(KEY.states, locs)
    local plain, known
    at, n = from, 0
    while at < last do
      local held, stop = args[at + 2], n + tonumber(args[at + 3])
      for i = n + 1, stop do
        local s = found[i]
        if s ~= plain then
          if not (s and #s >= STATE and sub(s, 1, 2) == PLAIN and byte(s, 17) == 0 and state.receipt(s) == held) then
            return false
          end
          plain, known = s, held
        elseif held ~= known then
          return false
        end
      end
      at, n = at + 4 + 2 * (stop - n), stop
    end
    names = {}
    for i = 1, tonumber(args[base + 4]) do names[i] = args[base + 4 + i] end
    return true
  end

  -- Writes the planned settle but the fields and the lane's row, which it returns.
  function outcomes.plain.apply(numbers)
    call('HSET', tombs.key(fields.segment), unpack(ends))
    call('HDEL', KEY.pool, unpack(locs))
    call('HDEL', KEY.states, unpack(locs))
    fields.segment_size, fields.sized = tombs.counted() + n, fields.segment
    fields.reserved, fields.done = fields.reserved - n, fields.done + n
    leases.drop(names)
    lateness.add(numbers)
    return lanes.with_done(row, n)
  end
end

function fast.settle(args)
  local lane, from = outcomes.plain.lane_of(args, 0)
  if not lane or not outcomes.plain.plan(args, 0, #args, from, lane, shard.open(lane)[3]) then return nil end
  shard.save(lane, outcomes.plain.apply(args[1]))
  return NONE
end

-- exchange: settle, and then reserve, in one call. The reserve can take what the settle makes ready.
-- KEYS  shard
-- ARGV  those of reserve; those of settle; how many those of reserve are
-- Returns {what settle returns, what reserve returns}

function scripts.exchange(args)
  local n = tonumber(table.remove(args))
  grants.read_numbers(args[4])
  local names, whole, over, from = outcomes.settle_args(args, n)
  names[#names + 1] = 'granted'
  shard.begin(names)
  local settled = outcomes.settle(args, n, whole, over, from)
  -- The settle has written its changes; what it has read of jobs is older.
  jobs.discard()
  local reserved = grants.reserve(args, n)
  shard.close()
  return {settled, reserved}
end

-- Plans both; the reserve reads before the settle writes, which makes no job ready. Returns whether both are the common
-- case, and the lane of the settle.
local function plan_exchange(args, base, last)
  local lane, from = outcomes.plain.lane_of(args, base)
  if not lane then return false end
  grants.read_numbers(args[4])
  local values = shard.open(lane, 'granted')
  local is_one, ready_lane, row = grants.plain.find_ready(lane, values[3])
  local are_common = is_one and grants.plain.plan(args, base, values[4], ready_lane, row)
    and outcomes.plain.plan(args, base, last, from, lane, values[3])
  return are_common, lane
end

-- The common case: both are.
function fast.exchange(args)
  local last = #args - 1
  local base = tonumber(args[last + 1])
  -- If something cannot be read, the script settles before it fails.
  local is_read, are_common, lane = pcall(plan_exchange, args, base, last)
  if not is_read or not are_common then return nil end
  local settled = outcomes.plain.apply(args[base + 1])
  return {NONE, grants.plain.apply(args, lane, settled)}
end
