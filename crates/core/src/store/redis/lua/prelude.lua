-- The layout of a shard: how a record is packed, where it lies, how due times, ready
-- queues, leases and tombstones are kept. Set before the body of every script; the
-- scripts themselves name no key and pack no byte.
--
-- KEYS[1] is the shard's base, "<prefix>:{<tag>}"; every other key hangs below it.
-- BUCKETS is set by the caller of this file (layout.rs).

local K = KEYS[1]
local call, pack, unpack_ = redis.call, struct.pack, struct.unpack
local sub, byte = string.sub, string.byte

-- The store's clock, read once. NOW is rounded down to compare with ("is it due?"),
-- NOW_UP is rounded up to add to, so that nothing is ever early.
local time = call('TIME')
local NOW_US = time[1] * 1000000 + time[2]
local NOW, NOW_UP = math.floor(NOW_US / 1000), math.ceil(NOW_US / 1000)

local DELAYED, READY, RESERVED, DONE, DEAD, CANCELLED = 1, 2, 3, 4, 5, 6
local STATE_NAMES = {'delayed', 'ready', 'reserved', 'done', 'dead', 'cancelled'}
local CANCEL_REQUESTED, EXTERNAL, HAS_RUN = 1, 2, 4

-- Records ------------------------------------------------------------------------
-- head: state, flags, due, created; then, once reserved, the run section; then the
-- tail as submitted: content hash, timeout, lengths, topic, id, origin, payload.
local HEAD, RUN, TAIL = '>BBI6I6', '>I4I4BI8c8I6I8I6I2I4BB', '>c8I4BBI2'
local NO_RAND = string.rep('\0', 8)

local function pool(loc)
  local a, b = byte(loc, 1, 2)
  return K .. ':pool:' .. (a * 256 + b) % BUCKETS
end

local function parse(raw)
  local j = {attempts = 0, failures = 0, lost = 0, lease = 0, rand = NO_RAND, deadline = 0,
    settled = 0, last_at = 0, last_status = 0, last_ms = 0, err = '', reason = ''}
  local at, err, reason
  j.st, j.flags, j.due, j.created, at = unpack_(HEAD, raw)
  if bit.band(j.flags, HAS_RUN) ~= 0 then
    j.attempts, j.failures, j.lost, j.lease, j.rand, j.deadline, j.settled,
      j.last_at, j.last_status, j.last_ms, err, reason, at = unpack_(RUN, raw, at)
    j.err, j.reason = sub(raw, at, at + err - 1), sub(raw, at + err, at + err + reason - 1)
    at = at + err + reason
  end
  j.tail = sub(raw, at)
  return j
end

local function get(loc)
  local raw = call('HGET', pool(loc), loc)
  return raw and parse(raw)
end

local function head_of(j)
  local head = pack(HEAD, j.st, j.flags, j.due, j.created)
  if bit.band(j.flags, HAS_RUN) == 0 then return head end
  return head .. pack(RUN, j.attempts, j.failures, j.lost, j.lease, j.rand, j.deadline, j.settled,
    j.last_at, j.last_status, j.last_ms, #j.err, #j.reason) .. j.err .. j.reason
end
local function bytes(j) return head_of(j) .. j.tail end

local function fresh(state, flags, due, tail)
  return {st = state, flags = flags, due = due, created = NOW, attempts = 0, failures = 0, tail = tail}
end

local function put(loc, j)
  local raw = bytes(j)
  call('HSET', pool(loc), loc, raw)
  return raw
end

local function drop(loc, j)
  if bit.band(j.flags, EXTERNAL) ~= 0 then call('UNLINK', K .. ':body:' .. loc) end
  call('HDEL', pool(loc), loc)
end

-- A payload too large for the record lies in a key of its own.
local function put_external(loc, payload) call('SET', K .. ':body:' .. loc, payload) end

local function names(j)
  local _, _, topic, id, origin, at = unpack_(TAIL, j.tail)
  return sub(j.tail, at, at + topic - 1), sub(j.tail, at + topic + id, at + topic + id + origin - 1)
end

local function content_hash(j) return sub(j.tail, 1, 8) end
local function timeout(j) return (unpack_('>I4', j.tail, 9)) end

local function has(j, flag) return bit.band(j.flags, flag) ~= 0 end
local function set(j, flag) j.flags = bit.bor(j.flags, flag) end
local function unset(j, flag) j.flags = bit.band(j.flags, bit.bnot(flag)) end

local function append(lists, name, ...)
  local list = lists[name]
  if not list then list = {}; lists[name] = list end
  for _, v in ipairs({...}) do list[#list + 1] = v end
end

-- Calls with many arguments, in slices that unpack can carry.
local function each_slice(list, slice, run)
  for i = 1, #list, slice do run(i, math.min(i + slice - 1, #list)) end
end

-- Ledger -------------------------------------------------------------------------
local tally = {}
local function count(name, n) tally[name] = (tally[name] or 0) + n end
local function move(from, to)
  if from then count(STATE_NAMES[from], -1) end
  if to then count(STATE_NAMES[to], 1) end
end
local function counter(name) return tonumber(call('HGET', K .. ':counters', name) or 0) end
local function write_tally()
  for name, n in pairs(tally) do
    if n ~= 0 then call('HINCRBY', K .. ':counters', name, n) end
  end
end

-- Wake-ups: hints, told once per script ------------------------------------------
local function tell(message)
  call('PUBLISH', string.match(K, '^(.-):{') .. ':wake', message)
end
local function tag() return string.match(K, '{(.*)}') end

-- `next` is when the shard's carrier will look again. A moment before it lowers it.
local soonest
local function moment(at) if not soonest or at < soonest then soonest = at end end
local function write_moment()
  if not soonest then return end
  local planned = call('GET', K .. ':next')
  if not planned or soonest < tonumber(planned) then
    call('SET', K .. ':next', soonest)
    tell('due ' .. tag() .. ' ' .. math.max(0, soonest - NOW))
  end
end

-- Due times: a sorted set per topic, and whose turn it is -------------------------
local function bucket(topic) return K .. ':bucket:' .. topic end

-- due: topic -> flat list of score, member
local function due_add(due)
  for topic, list in pairs(due) do
    local first = list[1]
    for i = 3, #list, 2 do if list[i] < first then first = list[i] end end
    each_slice(list, 2000, function(a, b) call('ZADD', bucket(topic), unpack(list, a, b)) end)
    call('ZADD', K .. ':turns', 'LT', first, topic)
    moment(first)
  end
end
local function due_remove(topic, loc) call('ZREM', bucket(topic), loc) end
local function due_topics(limit)
  return call('ZRANGE', K .. ':turns', '-inf', NOW, 'BYSCORE', 'LIMIT', 0, limit)
end
local function due_first(topic, limit)
  return call('ZRANGE', bucket(topic), 0, limit, 'WITHSCORES')
end
-- Takes the first n away; `head` is the due time that is then the earliest, if any.
-- A topic that is still due goes behind the others that are.
local function due_pop(topic, n, head)
  if head then
    call('ZADD', K .. ':turns', math.max(head, NOW), topic)
  else
    call('ZREM', K .. ':turns', topic)
  end
  if n > 0 then call('ZREMRANGEBYRANK', bucket(topic), 0, n - 1) end
end

-- Ready queues: a list per lane; lanes in turn -------------------------------------
local function lane_of(topic, origin) return topic .. ' ' .. origin end
local function queue(lane) return K .. ':ready:' .. lane end
local function ready_entry(loc, due) return loc .. pack('>I6', due) end
local function ready_match(entry, j)
  return j and j.st == READY and j.due == unpack_('>I6', entry, 13)
end

-- ready: lane -> list of entries. `push` is RPUSH, or LPUSH for those handed over again.
local function ready_add(ready, push)
  local woken = false
  for lane, list in pairs(ready) do
    local length
    each_slice(list, 4000, function(a, b) length = call(push, queue(lane), unpack(list, a, b)) end)
    call('ZADD', K .. ':lanes', 'NX', NOW_US, lane)
    woken = woken or length == #list
  end
  if woken then tell('ready ' .. tag()) end
end

-- Leases ---------------------------------------------------------------------------
local function lease_first(limit)
  return call('ZRANGE', K .. ':leases', '-inf', NOW, 'BYSCORE', 'LIMIT', 0, limit)
end
local function lease_add(list)
  each_slice(list, 4000, function(a, b) call('ZADD', K .. ':leases', unpack(list, a, b)) end)
end
local function lease_remove(list)
  each_slice(list, 4000, function(a, b) call('ZREM', K .. ':leases', unpack(list, a, b)) end)
end

-- What each caller was last given, for a minute: asked again with the same sequence, it
-- gets the same.
local function remember(caller, seq, rand, locs)
  call('SET', K .. ':caller:' .. caller, pack('>I8', seq) .. rand .. table.concat(locs), 'PX', 60000)
end
local function replayed(caller, seq)
  local raw = call('GET', K .. ':caller:' .. caller)
  if not raw then return nil end
  local last, rand, from = unpack_('>I8c8', raw)
  if last ~= seq then return nil end
  local locs = {}
  for i = from, #raw, 12 do locs[#locs + 1] = sub(raw, i, i + 11) end
  return {rand = rand, locs = locs}
end

-- Dead letters: by time of death ---------------------------------------------------
local function dead_add(loc) call('ZADD', K .. ':dead', NOW, loc) end
local function dead_remove(loc) call('ZREM', K .. ':dead', loc) end
local function dead_first(retention, limit)
  return call('ZRANGE', K .. ':dead', '-inf', NOW - retention, 'BYSCORE', 'LIMIT', 0, limit)
end

-- Tombstones: a hash per segment; the current one and the two before it are looked at.
-- A segment ends after half of `keep`, or once it holds a third of `cap` entries and is
-- a minute old; so every tombstone lives for `keep`, or at least for two minutes.
-- Its state has DOUBT added where a hand-over was begun and never settled.
local TOMB = '>Bc8I6I8I6I6I4I4'
local DOUBT = 128
local segment
local function segment_now(keep, cap)
  if segment then return segment end
  local meta = call('HMGET', K .. ':counters', 'segment', 'segment_at', 'segment_size')
  segment = {no = tonumber(meta[1] or 0), at = tonumber(meta[2] or 0), size = tonumber(meta[3] or 0)}
  local age = NOW - segment.at
  local full = segment.size >= cap / 3 and age >= 60000
  if age >= keep / 2 or full then
    segment = {no = segment.no + 1, at = NOW, size = 0}
    call('HSET', K .. ':counters', 'segment', segment.no, 'segment_at', NOW, 'segment_size', 0)
    if full then
      local old = K .. ':done:' .. (segment.no - 3)
      count('forgotten_early', call('HLEN', old))
      call('UNLINK', old)
    end
  end
  return segment
end
local function tomb_put(loc, j, state, lease, keep, cap)
  local seg = segment_now(keep, cap)
  local key = K .. ':done:' .. seg.no
  if j.lost > 0 then state = state + DOUBT end
  call('HSET', key, loc, pack(TOMB, state, content_hash(j), NOW, lease, j.created, j.due, j.attempts, j.failures))
  if seg.size == 0 then call('PEXPIREAT', key, seg.at + keep + math.floor(keep / 2) + 60000) end
  seg.size = seg.size + 1
  count('segment_size', 1)
end
local function tomb_get(loc)
  local no = counter('segment')
  for i = no, math.max(no - 2, 0), -1 do
    local raw = call('HGET', K .. ':done:' .. i, loc)
    if raw then
      local state, hash, at, lease = unpack_(TOMB, raw)
      return {raw = raw, st = state % DOUBT, doubt = state >= DOUBT, hash = hash, at = at, lease = lease}
    end
  end
end

-- Ends a job: its tombstone first, then the record goes.
local function finish(loc, j, state, lease, keep, cap)
  tomb_put(loc, j, state, lease, keep, cap)
  move(j.st, state)
  drop(loc, j)
end

-- Lateness: a hash of buckets a minute ---------------------------------------------
local function minute() return math.floor(NOW / 60000) end
local function lateness(m) return K .. ':late:' .. m end
local function write_lateness(text)
  if text == '' then return end
  local key, longest = lateness(minute()), 0
  for name, n in string.gmatch(text, '(%w+):(%d+)') do
    if name == 'max' then longest = tonumber(n) else call('HINCRBY', key, name, n) end
  end
  if longest > tonumber(call('HGET', key, 'max') or -1) then
    call('HSET', key, 'max', longest)
    call('PEXPIRE', key, 420000)
  end
end

-- Who holds the shard --------------------------------------------------------------
local function fenced(epoch)
  return string.match(call('GET', K .. ':lock') or '', '^%d+') ~= epoch
end

-- What the carrier needs to know before it sleeps: {due, lease, dead} in ms from now,
-- -1 for none. It also writes `next`, so that earlier moments are told.
local function rest(floor, retention)
  local function wait(key, add)
    local head = call('ZRANGE', K .. key, 0, 0, 'WITHSCORES')
    return head[2] and math.max(0, tonumber(head[2]) + add - NOW) or -1
  end
  local waits = {wait(':turns', 0), wait(':leases', 0), wait(':dead', retention)}
  local till = floor
  for _, w in ipairs(waits) do if w >= 0 and w < till then till = w end end
  call('SET', K .. ':next', NOW + till)
  return waits
end
