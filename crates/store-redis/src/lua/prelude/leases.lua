-- Leases: what one call gave with one deadline is a batch. `batches` has its locators, under
-- the number that all its leases share; `leases` has when to look at it: at its deadline, and
-- before that now and then, to forget what was settled. A batch whose last job is settled is
-- dropped with it. A receipt is the number, 8 bytes, and random bits, 8 bytes.
local LOOK_AGAIN = 60000

local function receipt(r) return sub(r, 18, 33) end
local function lease_number(r) return sub(r, 18, 25) end

-- A batch is to be looked at; returns what `batches` is to have.
local function batch_of(number, locs, ends)
  local at = min(ends, NOW + LOOK_AGAIN)
  call('ZADD', KEY.leases, at, number)
  earliest('lease_at', at)
  moment(at)
  return concat(locs)
end
-- The jobs of a batch; one that stands in it twice is told once.
local function batch_locs(batch)
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
local function batches_put(flat) sliced('HSET', KEY.batches, flat) end

-- Batches to look at by now, and what they hold.
local function batches_due(limit)
  local numbers = call('ZRANGE', KEY.leases, '-inf', NOW, 'BYSCORE', 'LIMIT', 0, limit)
  return numbers, fetch(KEY.batches, numbers)
end

-- Drops batches; `lease_at` may be too early then, which costs a look.
local function batches_drop(numbers)
  sliced('ZREM', KEY.leases, numbers)
  sliced('HDEL', KEY.batches, numbers)
end

-- What each caller was last given, for a minute: asked again with the same sequence (8
-- bytes), it gets the same. Kept are the sequence and the numbers of the batches.
local function remember(caller, seq, numbers)
  call('SET', KEY.caller .. caller, seq .. concat(numbers), 'PX', 60000)
end
local function replayed(caller, seq)
  local known = call('GET', KEY.caller .. caller)
  if known and sub(known, 1, 8) == seq then return sub(known, 9) end
end
