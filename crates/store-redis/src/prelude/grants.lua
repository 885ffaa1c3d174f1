-- Granting leases: ready -> reserved, for push and for pull. A transition begins a grant, takes jobs from
-- one lane or several, and saves it. A repeated call gets its jobs again.
--
-- The answer is {now in us, us until the waiter is to reserve again or -1, flags, {full lanes, origins and tenants}, {lane name, job state, locator, record,
-- locator, record, ...}, ...}. Jobs that share lane and job state share a group. Flags are MORE, when more jobs can be
-- reserved, WATCHED, while the events of the shard are watched, DEFERRED, when lanes were deferred, and LATER with MORE,
-- when there may be more only in deferred lanes.
-- `grants.reserve` is in transitions/reserve.lua.
-- Uses events, lanes, leases, order, records, shard.
local grants = {MORE = 1, WATCHED = 2, DEFERRED = 4, LATER = 8}

-- The job state of a first delivery, before and behind receipt and deadline.
local FIRST = char(RESERVED, 0) .. NO_TIME .. pack('>I4', 1) .. string.rep('\0', 5)
local FIRST_END = NO_LEASE .. NO_TIME .. NO_ATTEMPT

function grants.flags(more) return more + (events.is_watched and grants.WATCHED or 0) end

-- Returns the answer to a repeated call: the jobs that are still reserved by the leases of these batches, as they are
-- remembered.
local function repeat_answer(remembered)
  local answer, group = {NOW_US, -1, grants.flags(grants.MORE), {}}, {}
  local batches = leases.names(remembered)
  for i, batch in ipairs(leases.stored(batches)) do
    local number, names = leases.number(batches[i]), {}
    local locs = batch and leases.locs(batch) or {}
    jobs.load(locs)
    for _, loc in ipairs(locs) do
      if records[loc] then names[#names + 1] = record.lane(records[loc]) end
    end
    shard.load_rows(names)
    for _, loc in ipairs(locs) do
      local raw, s = records[loc], states[loc]
      local name = raw and lanes.name(record.lane(raw))
      if name and leases.holds(number, s) then
        if group[1] ~= name or group[2] ~= s then
          group = {name, s}
          answer[#answer + 1] = group
        end
        group[#group + 1], group[#group + 2] = loc, raw
      end
    end
  end
  return answer
end

-- Begins a grant of up to `limit` jobs and `budget` bytes. `length` is a function from a job's own timeout, packed as in
-- its record, to the length of its lease (ms). `row` is the row `granted`, nil for a consumer. Returns the grant, or nil and
-- the answer if the call is a repetition.
function grants.begin(caller, sequence, limit, bits, budget, length, row)
  local known = leases.repeated(caller, sequence, row)
  if known then return nil, repeat_answer(known) end
  return {
    caller = caller, sequence = sequence, row = row, left = limit, bits = bits, budget = budget, length = length,
    -- Numbers of batches only grow, even after a failover that has lost the last ones.
    last = max(fields.lease, NOW_US - 1),
    by_timeout = {}, by_length = {}, batches = {}, taken = 0, n_writes = 0,
    answer = {NOW_US, -1, 0, {}},
  }
end

-- Returns the number of a lease, packed, the job state of a first delivery under it, and its receipt and deadline, packed.
function grants.first(lease, bits, deadline)
  local number = pack('>I8', lease)
  local stamp = number .. bits .. six(deadline)
  return number, FIRST .. stamp .. FIRST_END, stamp
end

-- Returns the batch for jobs with a timeout, packed as in a record. Leases of one length share a batch.
local function batch_for(grant, packed)
  local length = grant.length(packed)
  local batch = grant.by_length[length]
  if not batch then
    grant.last = grant.last + 1
    local deadline = NOW_UP + length
    local number, first, stamp = grants.first(grant.last, grant.bits, deadline)
    batch = {number = number, stamp = stamp, first = first, deadline = deadline, locs = {}}
    grant.by_length[length] = batch
    grant.batches[#grant.batches + 1] = batch
  end
  grant.by_timeout[packed] = batch
  return batch
end

-- Reserves the jobs of a lane's first `most` entries while the grant has room, and leaves the entries in the queue.
-- Passes entries that lead to no ready job. Returns how many entries it has passed, reserved ones included, and how many
-- jobs it has reserved. Of a lane whose name is missing it reserves none.
function grants.take(grant, lane, entries, most)
  local name, locs, n, before = lanes.name(lane), {}, 0, grant.taken
  for i = 1, most do locs[i] = sub(entries[i], 1, 12) end
  jobs.load_new(locs)
  local admitted = order.is_used() and order.admitted(lane, entries, most) or nil
  local left, budget, answer, by_timeout, at = grant.left, grant.budget, grant.answer, grant.by_timeout, grant.n_writes
  local lane_of, due_of, weight = record.lane, jobs.due, record.weight
  local group, size
  local is_logged = events.is_logged
  while n < most and budget > 0 and left > 0 do
    local loc = locs[n + 1]
    local raw, s = records[loc], states[loc]
    -- The job of an entry that is in the queue twice is reserved at the first one.
    local is_ready = raw and not (s and byte(s) ~= DELAYED) and due_of(raw, s) == sub(entries[n + 1], 13)
    if is_ready and lane_of(raw) == lane and (not admitted or admitted[entries[n + 1]]) then
      if not name then break end
      local timeout = sub(raw, 14, 17)
      local batch = by_timeout[timeout] or batch_for(grant, timeout)
      local granted = s and state.with_lease(s, batch.stamp) or batch.first
      if not group or group[2] ~= granted then
        group, size = {name, granted}, 2
        answer[#answer + 1] = group
      end
      group[size + 1], group[size + 2] = loc, raw
      size = size + 2
      states[loc] = granted
      writes[at + 1], writes[at + 2] = loc, granted
      at = at + 2
      batch.locs[#batch.locs + 1] = loc
      budget, left = budget - weight(raw), left - 1
      if is_logged then events.step(loc, lane, READY, RESERVED, nil, 'reserve') end
    end
    n = n + 1
  end
  local taken = grant.left - left
  grant.left, grant.budget, grant.taken, grant.n_writes = left, budget, before + taken, at
  return n, taken
end

-- Writes batches and job states, and remembers the grant for a repeated call.
function grants.save(grant)
  if grant.taken > 0 then
    local values, names, is_push = {}, {}, grant.row ~= nil
    for i, batch in ipairs(grant.batches) do
      local name = is_push and leases.name(batch.number, batch.locs) or batch.number
      shard.wake_at(leases.plan(name, batch.deadline))
      if name == batch.number then values[#values + 1], values[#values + 2] = name, concat(batch.locs) end
      names[i] = leases.remembered(name)
    end
    leases.put(values)
    if is_push then
      shard.put('granted', leases.granted_row(grant.row, grant.caller, grant.sequence, concat(names)))
    else
      leases.remember(grant.caller, grant.sequence, concat(names))
    end
    shard.set('lease', grant.last)
  end
  jobs.save()
end

-- Returns the answer. `more` is the sum of the flags but WATCHED; `full` lists full lanes, origins and tenants; `due_in` is
-- the time until the next job is due (us), nil for a caller that does not wait.
function grants.answer(grant, more, full, due_in)
  grant.answer[2], grant.answer[3], grant.answer[4] = due_in or -1, grants.flags(more), full
  return grant.answer
end
