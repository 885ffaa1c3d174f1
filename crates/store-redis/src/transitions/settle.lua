-- Settles push leases: alone (settle), or followed by a reserve in the same call (exchange).
-- settle: reserved -> done (complete), delayed (retry), dead (bury), ready or delayed (release, without or with a delay),
--   or ready (return, of an attempt that was not begun). No job may occur twice in a call.
-- KEYS  shard
-- ARGV  five numbers as doubles: keep (ms), cap (tombstones); how many lanes, how many batches that are settled as a whole,
--   and how many of which no other job is left as far as the caller knows; the ids of these lanes, the names of the first
--   batches, those of the others; then groups of jobs that share lane and lease: a head with the receipt (16 bytes), and
--   per job: locator, the tombstone that it will have as done, and unless it is a plain success its outcome, as
--   outcomes.lua says
-- Returns {} when all are applied, else per job 1 applied, 2 replayed, 3 a late success that was applied, 4 stale
-- Uses archive, dead_letters, events, grants, lanes, leases, order, outcomes, records, shard, tombs.

-- How many arguments a plain success has.
local PLAIN = 2

-- Reads the arguments behind the first `base`. Returns the lanes, the batches that are settled as a whole, those whose
-- other jobs were settled before, and the index at which the groups begin.
function outcomes.settle_args(args, base)
  local n_lanes, n_whole, n_over = read('<ddd', args[base + 1], 17)
  local at, lists = base + 2, {}
  for i, n in ipairs({n_lanes, n_whole, n_over}) do
    lists[i], at = {unpack(args, at, at + n - 1)}, at + n
  end
  return lists[1], lists[2], lists[3], at
end

-- Does all of a settle between `shard.begin` and `shard.close`, and returns its answer.
function outcomes.settle(args, base, whole, over, from)
  local locs, ordered, at = {}, {}, from
  while at < #args do
    local step, stop = extent(args, at)
    local of_order = order.has(sub(args[at], 1, 8)) and ordered or NONE
    for i = at + 1, stop, step do
      locs[#locs + 1] = args[i]
      if of_order == ordered then ordered[#ordered + 1] = args[i] end
    end
    at = stop + 1
  end
  jobs.load_states(locs)
  order.load(ordered)

  local APPLIED, REPLAYED, LATE, COMPLETE = outcomes.APPLIED, outcomes.REPLAYED, outcomes.LATE, outcomes.COMPLETE
  local answers, dead, undead, undelayed, noted, plain_success = {}, {}, {}, {}, {}, char(COMPLETE, 0)
  local j, is_all, is_watched, is_archived = 0, true, events.on, archive.is_attached()
  at = from
  while at < #args do
    local step, stop = extent(args, at)
    local is_complete, lane, held, plain, done = step == PLAIN, sub(args[at], 1, 8), sub(args[at], SHARED_AT), nil, 0
    local lease = sub(held, 1, 8)
    for i = at + 1, stop, step do
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
          plain = not records[loc] and s
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
    end
    if done > 0 then lanes.move(lane, RESERVED, DONE, done) end
    at = stop + 1
  end

  over = is_all and #over > 0 and leases.over(over, locs) or {}
  local keep, cap = read('<dd', args[base + 1])
  outcomes.save(dead, noted, undelayed, keep, cap)
  if is_all then leases.drop(whole) end
  leases.drop(over)
  dead_letters.remove(undead)
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
  local UNCHANGED = char(RESERVED, 0)
  local lane, row, names, locs, ends, n

  -- Returns the lane and the index at which the groups begin; nil if the arguments behind the first `base` cannot be those
  -- of the common case.
  function outcomes.plain.lane_of(args, base)
    local n_lanes, n_whole, n_over = read('<ddd', args[base + 1], 17)
    if n_lanes > 1 or n_over > 0 then return nil end
    return args[base + 2], base + 3 + n_whole
  end

  -- Returns whether the settle is the common one. `last` is the index of its last argument.
  function outcomes.plain.plan(args, base, last, from, its_lane, its_row)
    lane, row, names, locs, ends, n = its_lane, its_row, nil, {}, {}, 0
    local held_by = {}
    if not row or fields.unusual >= shard.NOTED or tombs.begins_segment(read('<dd', args[base + 1])) then
      return false
    end
    local at = from
    while at < last do
      local step, stop = extent(args, at)
      if step > PLAIN or sub(args[at], 1, 8) ~= lane then return false end
      local held = sub(args[at], SHARED_AT)
      for i = at + 1, stop, PLAIN do
        n = n + 1
        locs[n], ends[2 * n - 1], ends[2 * n], held_by[n] = args[i], args[i], args[i + 1], held
      end
      at = stop + 1
    end
    if n > 1000 or lanes.ends_with(row, n) and not lanes.is_resting(lane) then return false end
    local found = fetch(KEY.states, locs)
    local plain, known
    for i = 1, n do
      local s, held = found[i], held_by[i]
      if s ~= plain then
        if not (s and #s >= STATE and sub(s, 1, 2) == UNCHANGED and byte(s, 17) == 0 and state.receipt(s) == held) then
          return false
        end
        plain, known = s, held
      elseif held ~= known then
        return false
      end
    end
    names = {unpack(args, base + 3, from - 1)}
    return true
  end

  -- Writes the planned settle but the fields and the lane's row, which it returns.
  function outcomes.plain.apply()
    call('HSET', tombs.key(fields.segment), unpack(ends))
    call('HDEL', KEY.pool, unpack(locs))
    call('HDEL', KEY.states, unpack(locs))
    fields.segment_size, fields.sized = tombs.counted() + n, fields.segment
    fields.reserved, fields.done = fields.reserved - n, fields.done + n
    leases.drop(names)
    return lanes.with_done(row, n)
  end
end

function fast.settle(args)
  local lane, from = outcomes.plain.lane_of(args, 0)
  if not lane or not outcomes.plain.plan(args, 0, #args, from, lane, shard.open(lane)[3]) then return nil end
  shard.save(lane, outcomes.plain.apply())
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
  local settled = outcomes.plain.apply()
  return {NONE, grants.plain.apply(args, lane, settled)}
end
