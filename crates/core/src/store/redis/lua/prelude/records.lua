-- Records: one hash per shard, a field per job, read and written many at a time.
--
-- A record is its head (state, flags, due, created, length of the run section), the run
-- section once the job was reserved, and the tail as submitted: content hash, timeout,
-- lengths, topic, id, origin, payload. A payload too large for it has a key of its own.
local HEAD, RUN, TAIL = '>BBI6I6B', '>I4I4BI8c8I6I8I6I2I4BB', '>BBI2'
local NO_BITS = string.rep('\0', 8)
local POOL = K .. ':pool'

local known = {}
local writes, drops, unlinks = {}, {}, {}

-- A record that is too short for what it says is passed over like a missing one, so that
-- it stops nobody else's jobs.
local function parse(raw)
  if #raw < 31 or #raw < 31 + byte(raw, 15) or (byte(raw, 15) > 0 and byte(raw, 15) < 53) then return false end
  local st, flags, due, created, length = read(HEAD, raw)
  return {st = st, flags = flags, due = due, created = created, length = length, raw = raw}
end

-- Reads many records at once; `get` finds them afterwards.
local function load(locs)
  for i = 1, #locs, 4000 do
    local last = math.min(i + 3999, #locs)
    local raws = call('HMGET', POOL, unpack(locs, i, last))
    for k, raw in ipairs(raws) do
      local loc = locs[i + k - 1]
      if known[loc] == nil then known[loc] = raw and parse(raw) or false end
    end
  end
end

local function get(loc)
  if known[loc] == nil then load({loc}) end
  return known[loc]
end

-- The run section, as a table that `put` writes back.
local function run(j)
  if j.run then return j.run end
  if j.length == 0 then
    j.run = {attempts = 0, failures = 0, lost = 0, lease = 0, bits = NO_BITS, deadline = 0, settled = 0,
      last_at = 0, last_status = 0, last_ms = 0, err = '', reason = ''}
    return j.run
  end
  local attempts, failures, lost, lease, bits, deadline, settled, last_at, last_status, last_ms, err, reason, at =
    read(RUN, j.raw, 16)
  j.run = {attempts = attempts, failures = failures, lost = lost, lease = lease, bits = bits, deadline = deadline,
    settled = settled, last_at = last_at, last_status = last_status, last_ms = last_ms,
    err = sub(j.raw, at, at + err - 1), reason = sub(j.raw, at + err, at + err + reason - 1)}
  return j.run
end

-- A new job.
local function fresh(st, flags, due, tail)
  local raw = pack(HEAD, st, flags, due, NOW, 0) .. tail
  return {st = st, flags = flags, due = due, created = NOW, length = 0, raw = raw}
end

local function write(loc, j)
  known[loc] = j
  writes[#writes + 1], writes[#writes + 2] = loc, j.raw
end

-- Writes a record whose fields have changed.
local function put(loc, j)
  local old, section = j.length, nil
  if j.run then
    local r = j.run
    section = pack(RUN, r.attempts, r.failures, r.lost, r.lease, r.bits, r.deadline, r.settled, r.last_at,
      r.last_status, r.last_ms, #r.err, #r.reason) .. r.err .. r.reason
  else
    section = sub(j.raw, 16, 15 + old)
  end
  j.length = #section
  j.raw = pack(HEAD, j.st, j.flags, j.due, j.created, j.length) .. section .. sub(j.raw, 16 + old)
  write(loc, j)
end

-- Writes a record of which only the state has changed.
local function put_state(loc, j, st)
  j.st = st
  j.raw = char(st) .. sub(j.raw, 2)
  write(loc, j)
end

local function put_external(loc, payload) call('SET', K .. ':body:' .. loc, payload) end

local function drop(loc, j)
  if bit.band(j.flags, EXTERNAL) ~= 0 then unlinks[#unlinks + 1] = K .. ':body:' .. loc end
  drops[#drops + 1] = loc
  known[loc] = false
end

-- Carries out what `put` and `drop` have gathered.
local function save()
  if #writes > 0 then sliced('HSET', POOL, writes) end
  if #drops > 0 then sliced('HDEL', POOL, drops) end
  for _, key in ipairs(unlinks) do call('UNLINK', key) end
end

local function head_of(j) return sub(j.raw, 1, 15 + j.length) end
local function content_hash(j) return sub(j.raw, 16 + j.length, 23 + j.length) end
local function timeout(j) return (read('>I4', j.raw, 24 + j.length)) end

-- Topic and origin (scheme and authority of the callback).
local function names(j)
  local topic, id, origin, at = read(TAIL, j.raw, 28 + j.length)
  return sub(j.raw, at, at + topic - 1), sub(j.raw, at + topic + id, at + topic + id + origin - 1)
end

local function has(j, flag) return bit.band(j.flags, flag) ~= 0 end
local function set(j, flag) j.flags = bit.bor(j.flags, flag) end
