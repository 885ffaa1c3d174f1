-- reserve: ready -> reserved, for push. Lanes take turns. None while the archive outbox is too full. A lane gives no job
--   while it is
--   full: as many of its jobs are in flight as the caller allows;
--   throttled: as many jobs of its origin or its tenant are;
--   paused: its topic or its destination is; it has no turn until a resume.
--   Throttled lanes that would hide others behind them are deferred: their turns come later.
-- KEYS  shard
-- ARGV  caller, sequence (8 bytes), limit (jobs), limit per lane, receipt bits (8 bytes), lease margin
--   (ms), default timeout (ms), longest lease without the margin (ms), byte budget, limit per origin, limit per
--   tenant, number under which the caller waits for due jobs, negative if it no longer waits, 0 for a caller that does
--   not wait; number of lanes with a limit of their own, id and limit of each of these, then name and limit of each such
--   origin and tenant
-- Returns what grants.lua says; as full the lanes, origins and tenants that have more jobs than their limit
-- Uses archive, due, grants, lanes, leases, paused_lanes, ready, records, shard, waiter.

-- How many lanes one call visits, beside full ones, and how many deferred ones.
local LANES, DEFERRED = 64, 8
-- An origin's or a tenant's throttled lanes are deferred if they are more than this; if no group has as many but all
-- together hide others, all are.
local MOST_THROTTLED = 8

-- Finds the lanes that a call visits. Returns open, throttled and paused ones; how many of the open and of the throttled
-- had their turn, the rest being deferred; whether more lanes may have a turn; and whether there are more deferred ones.
-- `is_throttled` is nil if every origin and tenant may give jobs. Else, if all lanes whose turn has come fit, some
-- deferred ones are added, because they may be open for this caller. `first` are the first lanes if they were read.
local function lanes_in_turn(n_full, is_throttled, first)
  local window = LANES + n_full
  if not is_throttled then
    local all = n_full == 0 and first or ready.lanes(0, window)
    shard.load_rows(all)
    local open, paused = paused_lanes.split(all)
    return open, NONE, paused, #open, 0, #all == window, false
  end

  local open, throttled, paused = {}, {}, {}
  local function look(skip, limit)
    local all = ready.lanes(skip, limit)
    shard.load_rows(all)
    local unpaused, set_aside = paused_lanes.split(all)
    for _, lane in ipairs(set_aside) do paused[#paused + 1] = lane end
    for _, lane in ipairs(unpaused) do
      local to = is_throttled(lane) and throttled or open
      to[#to + 1] = lane
    end
  end
  local in_turn = ready.in_turn()
  if in_turn > 0 then look(0, min(window, in_turn)) end
  local n_open, n_throttled = #open, #throttled
  if in_turn > window then return open, throttled, paused, n_open, n_throttled, true, false end
  local others = ready.n_lanes() - in_turn
  if others > 0 then look(in_turn + DEFERRED * (NOW_US % ceil(others / DEFERRED)), DEFERRED) end
  return open, throttled, paused, n_open, n_throttled, false, others > DEFERRED
end

-- Defers the throttled lanes of groups (origins, tenants) that hide others. Returns whether any lane was deferred.
local function defer(by_group, is_hidden)
  local few, is_any = {}, false
  for group, names in pairs(by_group) do
    if #names > MOST_THROTTLED then
      ready.defer(names, group)
      is_any = true
    else
      for _, lane in ipairs(names) do few[#few + 1] = lane end
    end
  end
  if is_any or not is_hidden or #few == 0 then return is_any end
  ready.defer(few)
  return true
end

-- The length (ms) of the lease of a job with a timeout, packed as in a record.
function grants.length(args, packed)
  local timeout = read('>I4', packed)
  return min(timeout == 0 and tonumber(args[7]) or timeout, tonumber(args[8])) + tonumber(args[6])
end

-- Makes due jobs ready if the caller is the waiter: returns whether it has looked, and when the next job is due (ms), nil
-- for never.
local function promote_for(number, limit)
  if not waiter.is(number) or fields.next > NOW or limit == 0 then return false end
  local _, soon, failure = due.promote(due.first_scheduled(), limit, due.bound())
  -- The carrier reports it.
  if failure or due.is_slot_near() then soon = NOW end
  return true, soon
end

-- The time until the next job is due (us), or less, if the caller is the waiter, else nil. A caller that found no job is
-- registered.
local function due_in_for(number, has_looked, soon, is_idle)
  if number < 0 then
    if waiter.is(-number) then waiter.stop() end
    return nil
  end
  if number == 0 then return nil end
  local is_registered, _, is_changed = waiter.register(number, is_idle)
  if is_changed then shard.set('waiter', number) end
  if not is_registered then return nil end
  if not has_looked then return waiter.due_in(waiter.known_due()) end
  if soon and soon <= NOW then
    -- More is due than this call could take.
    waiter.stop()
    return nil
  end
  shard.set('next', waiter.next_look(soon))
  return waiter.due_in(soon)
end

function grants.reserve(args, n_args, first_lanes)
  local limit, lane_limit = tonumber(args[3]), tonumber(args[4])
  local function length(timeout) return grants.length(args, timeout) end
  shard.load_rows({'granted'})
  local grant, answer =
    grants.begin(args[1], args[2], limit, args[5], tonumber(args[9]), length, rows.granted)
  if not grant then return answer end
  if archive.is_too_full() then return grants.answer(grant, 0, {}) end
  local number = tonumber(args[12])
  local has_promoted, soon = promote_for(number, limit)
  if has_promoted then first_lanes = nil end

  local origin_limit, tenant_limit, n_named = tonumber(args[10]), tonumber(args[11]), tonumber(args[13])
  -- A call cannot exceed a limit that is no smaller than its own.
  if origin_limit >= limit then origin_limit = math.huge end
  if tenant_limit >= limit then tenant_limit = math.huge end
  -- How many jobs an origin or a tenant may still give. Jobs without a tenant have a limit only if it is named.
  local own_limits, left, has_throttled = n_named > 0 and {} or NONE, nil, min(origin_limit, tenant_limit) <= 0
  local groups_at = 14 + 2 * n_named
  local n_full = 0
  for i = 14, groups_at - 1, 2 do
    own_limits[args[i]] = tonumber(args[i + 1])
    if own_limits[args[i]] == 0 then n_full = n_full + 1 end
  end
  -- Most calls have no limit on origins or tenants.
  local is_limited = min(origin_limit, tenant_limit) < math.huge or groups_at <= n_args
  if is_limited then left = {[lanes.NO_TENANT] = math.huge} end
  for i = groups_at, n_args, 2 do
    left[args[i]] = tonumber(args[i + 1])
    has_throttled = has_throttled or left[args[i]] <= 0
  end
  -- Takes `taken` jobs off a lane's origin and tenant. Returns how many more they allow, and the fuller of both.
  local function of_groups(lane, taken)
    local name = is_limited and lanes.name(lane)
    if not name then return math.huge end
    local origin, tenant = lanes.origin(name), lanes.tenant(name)
    local of_origin, of_tenant = (left[origin] or origin_limit) - taken, (left[tenant] or tenant_limit) - taken
    if taken > 0 then left[origin], left[tenant] = of_origin, of_tenant end
    if of_tenant <= of_origin then return of_tenant, tenant end
    return of_origin, origin
  end
  local function is_throttled(lane) return own_limits[lane] ~= 0 and of_groups(lane, 0) <= 0 end
  local open, throttled, paused, n_in_turn, n_throttled, is_more, is_rest =
    lanes_in_turn(n_full, has_throttled and is_throttled or nil, first_lanes)
  local hides_others = (is_more or is_rest) and n_throttled > LANES / 2
  local n_open = 0
  for _, lane in ipairs(open) do if own_limits[lane] ~= 0 then n_open = n_open + 1 end end
  local share = ceil(limit / max(n_open, 1))

  -- Entries stay in their queues until everything is written.
  local visits, full, is_listed = {}, {}, nil
  local function list(group)
    is_listed = is_listed or {}
    if is_listed[group] then return end
    is_listed[group] = true
    full[#full + 1] = group
  end
  local by_group = NONE
  for i, lane in ipairs(throttled) do
    local _, group = of_groups(lane, 0)
    list(group)
    if i <= n_throttled then
      if by_group == NONE then by_group = {} end
      append(by_group, group, lane)
    end
  end
  for i, lane in ipairs(open) do
    local bound, of_group, group = own_limits[lane] or lane_limit, of_groups(lane, 0)
    local most = min(bound, of_group, share, grant.left)
    if bound == 0 then
      full[#full + 1] = lanes.name(lane)
    elseif of_group <= 0 then
      list(group)
    elseif most == 0 or grant.budget <= 0 then
      is_more = true
      break
    else
      local entries = ready.range(lane, 0, most + 1)
      local n, taken = grants.take(grant, lane, entries, min(#entries, most))
      of_group, group = of_groups(lane, taken)
      -- A lane without a name has nothing more to give.
      if n < #entries and lanes.name(lane) then
        if bound <= n then
          full[#full + 1] = lanes.name(lane)
        elseif of_group <= 0 then
          list(group)
        else
          is_more = true
        end
      end
      -- If a deferred lane has given jobs, others may too.
      is_more = is_more or (i > n_in_turn and taken > 0 and is_rest)
      visits[#visits + 1] = {lane, n, n == #entries, taken}
    end
  end

  grants.save(grant)
  for _, visit in ipairs(visits) do
    if visit[4] > 0 then lanes.move(visit[1], READY, RESERVED, visit[4]) end
  end
  if #paused > 0 then paused_lanes.add(paused, KEY.lanes) end
  for i, visit in ipairs(visits) do
    ready.pop(visit[1], visit[2], visit[3], i)
  end
  local more = is_more and grants.MORE or is_rest and grants.MORE + grants.LATER or 0
  if next(by_group) and defer(by_group, hides_others) then more = more + grants.DEFERRED end
  -- What the call has made ready and left behind is for others.
  if has_promoted and (more > 0 or #full > 0) then ready.wake() end
  local is_idle = grant.taken == 0 and more == 0 and #full == 0
  return grants.answer(grant, more, full, due_in_for(number, has_promoted, soon, is_idle))
end

function scripts.reserve(args)
  -- The lanes are read first, so that their rows are read with the fields.
  tick()
  local first_lanes = ready.lanes(0, LANES)
  shard.begin({'granted', unpack(first_lanes)})
  local answer = grants.reserve(args, #args, first_lanes)
  shard.close()
  return answer
end

-- The common case: one lane has ready jobs, or jobs that are due for the waiter; none of them was delivered before, and no
-- limit of a group, pause, watcher or archive is in the way. `plan` finds out whether a reserve is that, from what it
-- reads, and `apply` writes it.
grants.plain = {}
do
  local granted, lane, row, n, is_all, answer, number, deadline, locs, writes
  -- Whether the fields have changed; for due jobs, when the next one of the lane and the next one of all are due (ms).
  local is_changed, is_due, following, soon

  -- Returns how many jobs a lane may give as far as the arguments say, and how many a call may take; nil if a limit of a
  -- group may be in the way.
  local function limits_of(args, n_args)
    local limit, of_lane, groups_at = tonumber(args[3]), tonumber(args[4]), 14 + 2 * tonumber(args[13])
    if tonumber(args[10]) < limit or tonumber(args[11]) < limit then return nil end
    for i = 14, n_args, 2 do
      if i >= groups_at then
        if tonumber(args[i + 1]) <= limit then return nil end
      elseif args[i] == lane then
        of_lane = tonumber(args[i + 1])
      end
    end
    return of_lane, limit
  end

  -- Finds the lane with due jobs, and reads its row. Returns false if several are due, or one for pull.
  local function find_due()
    local scheduled = call('ZRANGE', KEY.due_lanes, '0', '1', 'WITHSCORES')
    local at = tonumber(scheduled[2])
    soon = at
    if not at or at > NOW then return true end
    lane, soon = scheduled[1], tonumber(scheduled[4])
    if lanes.is_pull(lane) or soon and soon <= NOW or due.is_slot_near() then return false end
    is_due, row = true, call('HGET', KEY.shard, lane)
    return true
  end

  -- Finds the lane with ready jobs, and its row, which is `known_row` if it is the lane `known`. The fields must have been
  -- read. The waiter whose jobs are due does not look if none is ready. Returns false if several lanes have some, else
  -- true, the lane and its row.
  function grants.plain.find_ready(args, known, known_row)
    if args[12] ~= '0' and fields.next <= NOW and fields.ready == 0 then return true end
    local found = ready.lanes(0, 2)
    local its_lane = found[1]
    if not its_lane or its_lane == known then return #found < 2, its_lane, known_row end
    return #found < 2, its_lane, call('HGET', KEY.shard, its_lane)
  end

  -- Returns whether a reserve is the common one. `its_granted` is the row `granted`; the lane is nil if there are no ready
  -- jobs.
  function grants.plain.plan(args, n_args, its_granted, its_lane, its_row)
    granted, lane, row, n, answer, is_changed, is_due, soon = its_granted, its_lane, its_row, 0, nil, false, false, nil
    if fields.watched > NOW or fields.archive > 0 then return false end
    -- A call that is repeated has reserved jobs.
    if fields.reserved > 0 and leases.repeated(args[1], args[2], granted) then return false end
    local own = tonumber(args[12])
    if own < 0 then return false end
    local due_in, is_registered, was_registered = -1, false, false
    if own > 0 then is_registered, was_registered, is_changed = waiter.register(own, not lane) end
    if was_registered and fields.next <= NOW then
      if lane or not find_due() then return false end
      due_in = waiter.due_in(soon)
    elseif is_registered then
      due_in = waiter.due_in(waiter.known_due())
    end
    if not lane then
      answer = {NOW_US, due_in, 0, NONE}
      return true
    end
    local of_lane, limit = limits_of(args, n_args)
    if not (row and of_lane) or fields.fronts + fields.paused + fields.paused_hosts > 0 then return false end
    local most = min(limit, of_lane, 1000)
    if most < 1 then return false end
    local entries
    if is_due then
      entries, following = due.first(lane, most, NOW)
      if #entries == 0 or following and following <= NOW then return false end
      if following and (not soon or following < soon) then soon = following end
      due_in = waiter.due_in(soon)
    else
      entries = call('LRANGE', KEY.ready .. lane, '0', whole(most))
    end
    local size = #entries
    n, locs = min(size, most), {}
    for i = 1, n do locs[i] = sub(entries[i], 1, 12) end
    local found, raws = call('HMGET', KEY.states, unpack(locs)), call('HMGET', KEY.pool, unpack(locs))
    local group, budget, timeout, seen = {sub(row, 29), ''}, tonumber(args[9]), nil, {}
    for i = 1, n do
      local raw, loc = record.whole(raws[i]), locs[i]
      -- An entry may be stale, or in the queue twice.
      if found[i] or not raw or sub(raw, 1, 6) ~= sub(entries[i], 13) or record.lane(raw) ~= lane or seen[loc] then
        return false
      end
      seen[loc] = true
      local its_timeout = sub(raw, 14, 17)
      timeout, budget = timeout or its_timeout, budget - record.weight(raw)
      if its_timeout ~= timeout or budget < 0 then return false end
      group[2 * i + 1], group[2 * i + 2] = loc, raw
    end
    fields.lease = max(fields.lease, NOW_US - 1) + 1
    deadline = NOW_UP + grants.length(args, timeout)
    number, group[2] = grants.first(fields.lease, args[5], deadline)
    writes, is_all = {}, n == size
    for i = 1, n do writes[2 * i - 1], writes[2 * i] = locs[i], group[2] end
    local is_full = not is_all and of_lane <= n
    answer = {NOW_US, due_in, (is_all or is_full) and 0 or grants.MORE, is_full and {group[1]} or NONE, group}
    return true
  end

  -- Writes the planned leases, if there are any, and the fields, and returns the answer. In an exchange also writes the row
  -- `settled` of the lane `of_settle`.
  function grants.plain.apply(args, of_settle, settled)
    if n == 0 then
      if of_settle then shard.save(of_settle, settled) elseif is_changed then shard.save() end
      return answer
    end
    if lane == of_settle then row = settled end
    if is_due then fields.next = waiter.next_look(soon) end
    shard.wake_at(leases.plan(number, deadline))
    call('HSET', KEY.batches, number, concat(locs))
    call('HSET', KEY.states, unpack(writes))
    fields.reserved = fields.reserved + n
    if is_due then
      fields.delayed, row = fields.delayed - n, lanes.counted(row, -n, 0, n, 0)
    else
      fields.ready, row = fields.ready - n, lanes.counted(row, 0, -n, n, 0)
    end
    granted = leases.granted_row(granted, args[1], args[2], number)
    if of_settle and of_settle ~= lane then
      shard.save(lane, row, 'granted', granted, of_settle, settled)
    else
      shard.save(lane, row, 'granted', granted)
    end
    if is_due then due.pop(lane, n, following, NOW) else ready.pop(lane, n, is_all, 1) end
    return answer
  end
end

function fast.reserve(args)
  local granted = shard.open('granted')[3]
  local is_one, lane, row = grants.plain.find_ready(args)
  return is_one and grants.plain.plan(args, #args, granted, lane, row) and grants.plain.apply(args) or nil
end
