-- reserve: ready -> reserved, for push. Lanes take turns. None while the archive outbox is too full. A lane gives no job
--   while it is
--   full: as many of its jobs are in flight as the caller allows;
--   throttled: as many jobs of its origin or its tenant are;
--   paused: its topic or its destination is; it has no turn until a resume;
--   limited: its destination is, and the caller has no places for it.
--   Throttled lanes that would hide others behind them are deferred: their turns come later.
-- KEYS  shard
-- ARGV  caller, sequence (8 bytes), receipt bits (8 bytes), eleven numbers as doubles: limit (jobs), limit per lane, lease
--   margin (ms), default timeout (ms), longest lease without the margin (ms), byte budget, limit per origin, limit per
--   tenant, number under which the caller waits for due jobs, negative if it no longer waits, 0 for a caller that does
--   not wait; number of lanes with a limit of their own, number of limited lanes with places. Then id and limit of each of
--   the former, id and number of places of each of the latter, name and limit of each such origin and tenant
-- Returns what grants.lua says; as full the lanes, origins and tenants that have more jobs than their limit, and
--   `=<ready jobs> <lane>` for some limited lanes
-- Uses archive, due, grants, lanes, leases, order, paused_lanes, ready, records, shard, waiter.

-- The numbers among the arguments, and the index of the first argument behind them.
local limit, lane_limit, margin, default_timeout, longest, most_bytes, origin_limit, tenant_limit, number, n_named
local n_admitted
local NUMBERS, NAMED_AT = '<' .. string.rep('d', 11), 5
function grants.read_numbers(packed)
  limit, lane_limit, margin, default_timeout, longest, most_bytes, origin_limit, tenant_limit, number, n_named,
    n_admitted = read(NUMBERS, packed)
end

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
local function length_of(packed)
  local timeout = read('>I4', packed)
  return min(timeout == 0 and default_timeout or timeout, longest) + margin
end

-- Makes due jobs ready if the caller is the waiter: returns whether it has looked, and when the next job is due (ms), nil
-- for never.
local function promote_for_waiter()
  if not waiter.is(number) or fields.next > NOW or limit == 0 then return false end
  local _, soon, failure = due.promote(due.first_scheduled(), limit, due.bound())
  -- The carrier reports it.
  if failure or due.is_slot_near() then soon = NOW end
  return true, soon
end

-- The time until the next job is due (us), or less, if the caller is the waiter, else nil. A caller that found no job is
-- registered.
local function due_in_for(has_looked, soon, is_idle)
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
  waiter.plan(soon)
  return waiter.due_in(soon)
end

-- Finds the limited lanes that the caller has places for, with their number, unless they are paused.
local function admitted_lanes(args, at)
  local all, found = {}, {}
  for i = 0, n_admitted - 1 do all[i + 1] = args[at + 2 * i] end
  shard.load_rows(all)
  for i, lane in ipairs(all) do
    if rows[lane] and paused_lanes.may_be_admitted(lane) then
      found[#found + 1] = {lane, tonumber(args[at + 2 * i - 1])}
    end
  end
  return found
end

-- Adds limited lanes with ready jobs to the list: those among `paused` and the admitted ones, and some others.
local LISTED = 8
local function list_limited(paused, admitted, full)
  local is_listed = {}
  local function add(lane)
    local name = not is_listed[lane] and lanes.name(lane)
    is_listed[lane] = true
    local n = name and lanes.ready(lane) or 0
    -- Those that wait in an ordered topic are not in the queue.
    if n > 0 and order.has(lane) then n = min(n, ready.length(lane)) end
    if n > 0 then full[#full + 1] = '=' .. whole(n) .. ' ' .. name end
  end
  for _, lane in ipairs(paused) do if paused_lanes.is_limited(lane) then add(lane) end end
  for _, visit in ipairs(admitted) do if paused_lanes.is_limited(visit[1]) then add(visit[1]) end end
  for _, lane in ipairs(paused_lanes.limited(LISTED)) do add(lane) end
end

function grants.reserve(args, n_args, first_lanes)
  shard.load_rows({'granted'})
  local grant, answer = grants.begin(args[1], args[2], limit, args[3], most_bytes, length_of, rows.granted)
  if not grant then return answer end
  if archive.is_too_full() then return grants.answer(grant, 0, {}) end
  local has_promoted, soon = promote_for_waiter()
  if has_promoted then first_lanes = nil end

  -- A call cannot exceed a limit that is no smaller than its own.
  if origin_limit >= limit then origin_limit = math.huge end
  if tenant_limit >= limit then tenant_limit = math.huge end
  -- How many jobs an origin or a tenant may still give. Jobs without a tenant have a limit only if it is named.
  local own_limits, left, has_throttled = n_named > 0 and {} or NONE, nil, min(origin_limit, tenant_limit) <= 0
  local admitted_at = NAMED_AT + 2 * n_named
  local groups_at = admitted_at + 2 * n_admitted
  local n_full = 0
  for i = NAMED_AT, admitted_at - 1, 2 do
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
  local admitted = n_admitted > 0 and admitted_lanes(args, admitted_at) or NONE
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
  for _, visit in ipairs(admitted) do
    local lane, most = visit[1], min(visit[2], of_groups(visit[1], 0), grant.left)
    -- A lane is visited once: twice it would lose entries.
    own_limits = own_limits == NONE and {} or own_limits
    own_limits[lane] = 0
    if most > 0 and grant.budget > 0 then
      local entries = ready.range(lane, 0, most + 1)
      local n, taken = grants.take(grant, lane, entries, min(#entries, most))
      of_groups(lane, taken)
      visits[#visits + 1] = {lane, n, n == #entries, taken}
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
  local n_listed = #full
  if fields.limits > 0 then list_limited(paused, admitted, full) end
  for i, visit in ipairs(visits) do
    ready.pop(visit[1], visit[2], visit[3], i)
  end
  local more = is_more and grants.MORE or is_rest and grants.MORE + grants.LATER or 0
  if next(by_group) and defer(by_group, hides_others) then more = more + grants.DEFERRED end
  -- What the call has made ready and left behind is for others.
  if has_promoted and (more > 0 or n_listed > 0) then ready.wake() end
  local is_idle = grant.taken == 0 and more == 0 and n_listed == 0
  return grants.answer(grant, more, full, due_in_for(has_promoted, soon, is_idle))
end

function scripts.reserve(args)
  -- The lanes are read first, so that their rows are read with the fields.
  tick()
  grants.read_numbers(args[4])
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
  local granted, lane, row, n, is_all, answer, name, deadline, locs, writes
  -- Whether the fields have changed; for due jobs, when the next one of the lane and the next one of all are due (ms).
  local is_changed, is_due, following, soon

  -- Returns how many jobs the lane may give as far as the arguments say; nil if a limit of a group may be in the way.
  local function limit_of_lane(args, n_args)
    local of_lane, groups_at = lane_limit, NAMED_AT + 2 * n_named
    if origin_limit < limit or tenant_limit < limit then return nil end
    for i = NAMED_AT, n_args, 2 do
      if i >= groups_at then
        if tonumber(args[i + 1]) <= limit then return nil end
      elseif args[i] == lane then
        of_lane = tonumber(args[i + 1])
      end
    end
    return of_lane
  end

  -- Returns the first two lanes of the due index.
  function grants.plain.scheduled() return call('ZRANGE', KEY.due_lanes, '0', '1') end

  -- Finds the lane whose jobs may be due, and reads its row, unless both were `scheduled` and read. Returns false if several
  -- are due, or if it is one for pull.
  local function find_due(scheduled, its_row)
    local lanes_due = scheduled or grants.plain.scheduled()
    local first, second = lanes_due[1], lanes_due[2]
    soon = nil
    if not first then return true end
    if lanes.is_pull(first) or due.is_slot_near() then return false end
    soon = second and tonumber(call('ZSCORE', KEY.due_lanes, second))
    if soon and soon <= NOW then return false end
    is_due, lane, row = true, first, scheduled and its_row or call('HGET', KEY.shard, first)
    return true
  end

  -- Finds the lane with ready jobs, and its row, which is `known_row` if it is the lane `known`. The fields must have been
  -- read. The waiter whose jobs are due does not look if none is ready. Returns false if several lanes have some, else
  -- true, the lane and its row.
  function grants.plain.find_ready(known, known_row)
    if number ~= 0 and fields.next <= NOW and fields.ready == 0 then return true end
    local found = ready.lanes(0, 2)
    local its_lane = found[1]
    if not its_lane or its_lane == known then return #found < 2, its_lane, known_row end
    return #found < 2, its_lane, call('HGET', KEY.shard, its_lane)
  end

  -- Returns whether a reserve is the common one. `its_granted` is the row `granted`; the lane is nil if there are no ready
  -- jobs. `scheduled` and the row of the first lane in it are given if they were read.
  function grants.plain.plan(args, n_args, its_granted, its_lane, its_row, scheduled, scheduled_row)
    granted, lane, row, n, answer, is_changed, is_due, soon = its_granted, its_lane, its_row, 0, nil, false, false, nil
    if fields.unusual >= shard.NOTED or n_admitted > 0 then return false end
    -- The answer lists limited lanes.
    if fields.unusual > 0 and fields.limits > 0 then return false end
    -- A call that is repeated has reserved jobs.
    if fields.reserved > 0 and leases.repeated(args[1], args[2], granted) then return false end
    if number < 0 then return false end
    local due_in, is_registered, was_registered = -1, false, false
    if number > 0 then is_registered, was_registered, is_changed = waiter.register(number, not lane) end
    if was_registered and fields.next <= NOW then
      if lane or not find_due(scheduled, scheduled_row) then return false end
      due_in = waiter.due_in(soon)
    elseif is_registered then
      due_in = waiter.due_in(waiter.known_due())
    end
    if not lane then
      answer = {NOW_US, due_in, 0, NONE}
      return true
    end
    local of_lane = limit_of_lane(args, n_args)
    if not (row and of_lane) or fields.fronts + fields.unusual > 0 then return false end
    local most = min(limit, of_lane, 1000)
    if most < 1 then return false end
    local entries
    if is_due then
      entries, following = due.first(lane, most, NOW)
      if following and following <= NOW or #entries == 0 and not following then return false end
      if following and (not soon or following < soon) then soon = following end
      due_in = waiter.due_in(soon)
      if #entries == 0 then
        answer = {NOW_US, due_in, 0, NONE}
        return true
      end
    else
      entries = call('LRANGE', KEY.ready .. lane, '0', whole(most))
    end
    local size = #entries
    n, locs = min(size, most), {}
    for i = 1, n do locs[i] = sub(entries[i], 1, 12) end
    local found, raws = fetch(KEY.states, locs), fetch(KEY.pool, locs)
    local group, budget, timeout, seen = {sub(row, 29), ''}, most_bytes, nil, {}
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
    deadline = NOW_UP + length_of(timeout)
    name, group[2] = grants.first(fields.lease, args[3], deadline)
    name = leases.name(name, locs)
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
    if is_due then waiter.plan(soon) end
    shard.wake_at(leases.plan(name, deadline))
    if n > 1 then call('HSET', KEY.batches, name, concat(locs)) end
    call('HSET', KEY.states, unpack(writes))
    fields.reserved = fields.reserved + n
    if is_due then
      fields.delayed, row = fields.delayed - n, lanes.counted(row, -n, 0, n)
    else
      fields.ready, row = fields.ready - n, lanes.counted(row, 0, -n, n)
    end
    granted = leases.granted_row(granted, args[1], args[2], leases.remembered(name))
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
  tick()
  grants.read_numbers(args[4])
  -- A caller that waits for due jobs mostly comes when one is due. Then its lane's row is read with the fields.
  local scheduled = number > 0 and grants.plain.scheduled()
  local values = scheduled and scheduled[1] and shard.open('granted', scheduled[1]) or shard.open('granted')
  local is_one, lane, row = grants.plain.find_ready()
  return is_one and grants.plain.plan(args, #args, values[3], lane, row, scheduled, values[4])
    and grants.plain.apply(args) or nil
end
