-- Leases in batches. A batch is the jobs that one call granted with one deadline. `leases` has the time at which recover
-- checks each batch next: the deadline, or earlier to drop settled jobs. A batch's name there is the number that its
-- leases share, and `batches` has the locators of its jobs by this number. A notifier's batch of one job has no entry in
-- `batches`: its name is the number and the locator. A batch is removed when its last job is settled. A receipt is the
-- lease's number (8 bytes) and random bits (8 bytes).
--
-- If that time is later than recover can plan, it was stored before the clock was set back. Such a batch is checked at
-- once, and its leases begin anew: each lasts for as long from now as it was granted for.
-- Uses records, shard.
local leases = {
  -- After how long expired leases of pull jobs are checked again (ms).
  SOON = 1000,
  -- After how long each batch is checked at the latest (ms).
  LOOK_AGAIN = 60000,
}
local LOOK_AGAIN = leases.LOOK_AGAIN

local NUMBER = 8
function leases.number(name) return sub(name, 1, NUMBER) end
-- Returns the name of a notifier's batch.
function leases.name(number, locs) return #locs == 1 and number .. locs[1] or number end

-- Plans the check of a batch by its name, at its deadline (ms) or after LOOK_AGAIN. Returns the time (ms), at which the
-- carrier has to wake.
function leases.plan(name, deadline)
  local at = min(deadline, NOW + LOOK_AGAIN)
  call('ZADD', KEY.leases, whole(at), name)
  shard.earliest('lease_at', at)
  return at
end

-- Returns the locators in a batch, each once.
function leases.locs(batch)
  local locs, seen = {}, {}
  for i = 1, #batch, 12 do
    local loc = sub(batch, i, i + 11)
    if not seen[loc] then
      seen[loc] = true
      locs[#locs + 1] = loc
    end
  end
  return locs
end

-- Whether a job is reserved by a lease of this number.
function leases.holds(number, s) return s and state.code(s) == RESERVED and state.lease(s) == number end

function leases.put(flat) sliced('HSET', KEY.batches, flat) end

-- Returns the locators in batches, by their names, as one string each; false for a batch that is gone.
function leases.stored(names)
  local found = fetch(KEY.batches, names)
  for i, name in ipairs(names) do
    if #name > NUMBER then found[i] = sub(name, NUMBER + 1) end
  end
  return found
end

-- Returns the names of batches to check now, the locators in each, and how many of them are due. Up to `limit` are due;
-- after them come up to `limit` others, whose time was stored before the clock was set back.
function leases.due(limit)
  local names = call('ZRANGE', KEY.leases, '-inf', NOW, 'BYSCORE', 'LIMIT', 0, limit)
  local n_due = #names
  local after = string.format('(%.0f', NOW + LOOK_AGAIN)
  for _, name in ipairs(call('ZRANGE', KEY.leases, after, '+inf', 'BYSCORE', 'LIMIT', 0, limit)) do
    names[#names + 1] = name
  end
  return names, leases.stored(names), n_due
end

-- Returns when leases of a number were granted (ms); NOW if that is later, since the clock has been set back.
function leases.granted(number) return min(floor(read('>I8', number) / 1000), NOW) end

-- Returns the deadline (ms) of a lease that begins anew: as long from now as from its grant, which the batch's number
-- says, to its old deadline, but at most `longest` ms, and never later than before.
function leases.anew(number, s, longest)
  local length = state.deadline(s) - floor(read('>I8', number) / 1000)
  if length <= 0 or length > longest then length = longest end
  return min(state.deadline(s), NOW_UP + length)
end

-- Returns the numbers of those batches of which no job but `settled` is reserved. Callers count the jobs that they have
-- settled of a batch, but after a failover or a crash some settlements may be undone, so this reads the job states. A
-- batch of more than `longest` bytes counts as reserved; nil for no such limit.
function leases.over(numbers, settled, longest)
  local over, others, number_of, is_settled, is_held = {}, {}, {}, {}, {}
  for _, loc in ipairs(settled) do is_settled[loc] = true end
  for i, batch in ipairs(fetch(KEY.batches, numbers)) do
    local number, bytes = numbers[i], batch and #batch or 0
    if longest and bytes > longest then
      is_held[number], bytes = true, 0
    end
    for at = 1, bytes, 12 do
      local loc = sub(batch, at, at + 11)
      if not is_settled[loc] then
        others[#others + 1] = loc
        number_of[#others] = number
      end
    end
  end
  for i, s in ipairs(fetch(KEY.states, others)) do
    if leases.holds(number_of[i], s) then is_held[number_of[i]] = true end
  end
  for _, number in ipairs(numbers) do
    if not is_held[number] then over[#over + 1] = number end
  end
  return over
end

-- Removes batches by their names. `lease_at` may then be too early, which costs one needless check.
function leases.drop(names)
  sliced('ZREM', KEY.leases, names)
  if #names == 1 and #names[1] > NUMBER then return end
  local several = {}
  for _, name in ipairs(names) do
    if #name == NUMBER then several[#several + 1] = name end
  end
  sliced('HDEL', KEY.batches, several)
end

-- The last grant of a caller is remembered for a minute: the sequence (8 bytes) and the batches' names, each after its
-- length. A call with the same sequence is a repetition, and gets these names.
--
-- The last grant to a notifier is in the row `granted`, with the time (6 bytes) before it and the length of the caller and
-- the caller behind it, because that is cheaper to write. It goes to a key of its caller when another one gets jobs.
do
  local REMEMBERED = 60000

  local function put(caller, grant) call('SET', KEY.caller .. caller, grant, 'PX', whole(REMEMBERED)) end
  local function caller_of(row) return sub(row, -1 - byte(row, -1), -2) end

  -- Returns a name as it is remembered, and the names that are.
  function leases.remembered(name) return char(#name) .. name end
  function leases.names(remembered)
    local names, at = {}, 1
    while at <= #remembered do
      local stop = at + byte(remembered, at)
      names[#names + 1], at = sub(remembered, at + 1, stop), stop + 1
    end
    return names
  end

  function leases.remember(caller, sequence, names) put(caller, sequence .. names) end

  -- Returns the row `granted` with a new grant. `row` is the former one, or false.
  function leases.granted_row(row, caller, sequence, names)
    if row and caller_of(row) ~= caller and read('>I6', row) > NOW - REMEMBERED then
      put(caller_of(row), sub(row, 7, -2 - byte(row, -1)))
    end
    return six(NOW) .. sequence .. names .. caller .. char(#caller)
  end

  -- Returns the remembered names of a repetition, else nil. `row` is the row `granted`, false if there is none, or nil for
  -- a consumer.
  function leases.repeated(caller, sequence, row)
    local known
    if row and caller_of(row) == caller then
      known = sub(row, 7, -2 - byte(row, -1))
    else
      known = call('GET', KEY.caller .. caller)
    end
    if known and sub(known, 1, 8) == sequence then return sub(known, 9) end
  end
end
