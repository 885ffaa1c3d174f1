-- The shard's hash: its fields, its rows, and how a call begins and closes.
--
-- The fields are numbers: the ledger (how many jobs are in each state, how many were ever accepted or purged, and how
-- many are missing), sizes, the times of the next looks, and switches. They are packed in three values. Every call reads
-- `fields` and `keys` first of all, and most also `more`; a fast path only when it uses one of them. Changed values are
-- written last of all.
-- If a command fails in between, for example at a key of another type, they are written if the jobs were: so a call that
-- fails half-way leaves index entries at most, which are hints.
--
-- The fields in `keys` say which keys there are, and are written before these keys. They are a value of their own because
-- a server can come back with the first commands of a call only, after which later calls write `fields` as they were
-- before it.
--
-- The same hash has a row for each lane with jobs (lanes.lua), and for each known topic and some tenants (topics.lua),
-- and the name of the carrier that holds the shard.
-- Uses archive, events, lanes, order, waiter.
local shard, waiter, lanes, topics, destinations, paused_lanes, events, archive, tag_index, order = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
-- Fields by name, and rows by the lane's id or the topic's field.
local fields, rows
-- Rows to be written, and when the carrier is to look next.
local changes, next_look
-- The value `more` as it is stored, and which values this call has changed; whether it has read the fields, and whether it
-- has changed jobs.
local stored_more, is_changed, is_more_changed, is_begun, is_committed
do
  -- Each field is a double, which holds all whole numbers that occur.
  local FIELDS, KEYS, MORE = '<' .. string.rep('d', 14), '<' .. string.rep('d', 6), '<' .. string.rep('d', 29)
  local NO_FIELDS, NO_KEYS, NO_MORE = string.rep('\0', 14 * 8), string.rep('\0', 6 * 8), string.rep('\0', 29 * 8)

  -- The two functions of a value have the same names in the same order, which is its layout.
  local function read_fields(f, value)
    f.accepted, f.delayed, f.ready, f.reserved, f.done, f.lease, f.next, f.slot, f.lease_at, f.sized, f.segment_size,
      f.waiter, f.waits_until, f.unusual = read(FIELDS, value)
  end
  local function packed_fields(f)
    return pack(FIELDS, f.accepted, f.delayed, f.ready, f.reserved, f.done, f.lease, f.next, f.slot, f.lease_at,
      f.sized, f.segment_size, f.waiter, f.waits_until, f.unusual)
  end
  local function read_keys(f, value)
    f.fronts, f.segment, f.segment_at, f.segment_was, f.attempts_segment, f.attempts_at = read(KEYS, value)
  end
  local function packed_keys(f)
    return pack(KEYS, f.fronts, f.segment, f.segment_at, f.segment_was, f.attempts_segment, f.attempts_at)
  end
  local function read_more(f, value)
    f.dead, f.cancelled, f.purged, f.missing, f.replaced, f.lanes, f.topics, f.pauses, f.unqueued,
      f.tombstones_evicted_early, f.attempts_size, f.watched_since, f.archive_first, f.archive_bytes,
      f.archive_bound, f.archive_dropped, f.epoch, f.dead_at, f.next_notice_at, f.next_firing_at, f.paused,
      f.paused_hosts, f.limits, f.watched, f.archive, f.ordered, f.ordered_at, f.numbered, f.waiting_keys = read(MORE, value)
  end
  local function packed_more(f)
    return pack(MORE, f.dead, f.cancelled, f.purged, f.missing, f.replaced, f.lanes, f.topics, f.pauses, f.unqueued,
      f.tombstones_evicted_early, f.attempts_size, f.watched_since, f.archive_first, f.archive_bytes,
      f.archive_bound, f.archive_dropped, f.epoch, f.dead_at, f.next_notice_at, f.next_firing_at, f.paused,
      f.paused_hosts, f.limits, f.watched, f.archive, f.ordered, f.ordered_at, f.numbered, f.waiting_keys)
  end

  -- The fields of `more` are a table of their own, so that each call reads them anew.
  local is_of_more = {}
  read_more(is_of_more, NO_MORE)
  local more = {}
  local function take_more(value)
    stored_more = value or NO_MORE
    read_more(more, stored_more)
  end
  fields = setmetatable({}, {
    __index = function(_, name)
      if not stored_more then take_more(call('HGET', KEY.shard, 'more')) end
      return more[name]
    end,
    __newindex = function(all, name, value)
      if not is_of_more[name] then
        rawset(all, name, value)
        return
      end
      -- Read before the first change.
      local _ = all[name]
      more[name] = value
    end,
  })

  -- Reads the fields and rows. Returns a list of the two values, and the rows.
  local function read_all(...)
    local values = call('HMGET', KEY.shard, 'fields', 'keys', ...)
    read_fields(fields, values[1] or NO_FIELDS)
    read_keys(fields, values[2] or NO_KEYS)
    stored_more = nil
    return values
  end

  -- Sets the field `unusual`, by which the fast paths see without reading `more` that they cannot be taken: 1 if something
  -- is paused or limited, 2 more while events are published or an archive is attached, and 4 more if a topic is ordered.
  local function set_unusual()
    local is_paused = fields.paused + fields.paused_hosts + fields.limits > 0
    local is_noted = fields.watched > NOW or fields.archive > 0
    local unusual = (is_paused and 1 or 0) + (is_noted and shard.NOTED or 0) + (fields.ordered > 0 and shard.ORDERED or 0)
    if unusual ~= fields.unusual then shard.set('unusual', unusual) end
  end

  function shard.start() is_begun, is_committed = false, false end

  -- The least values of `unusual` while events are published or an archive is attached, and if a topic is ordered.
  shard.NOTED, shard.ORDERED = 2, 4

  -- Reads the clock, the fields, and rows if there are not too many.
  function shard.begin(row_names)
    if not NOW_US then tick() end
    is_begun, is_changed, is_more_changed = true, false, false
    changes, next_look, rows = {}, nil, {}
    lanes.begin()
    local n = row_names and #row_names or 0
    local has_rows = n > 0 and n <= 4000
    local values = has_rows and read_all('more', unpack(row_names)) or read_all('more')
    take_more(values[3])
    if has_rows then for i = 1, n do rows[row_names[i]] = values[i + 3] end end
    set_unusual()
    is_uncommon[K] = fields.unusual >= shard.NOTED
    events.begin(fields.watched)
    archive.begin(fields.archive)
  end

  function shard.set(name, value)
    fields[name] = value
    if is_of_more[name] then is_more_changed = true else is_changed = true end
  end
  function shard.count(name, n) shard.set(name, fields[name] + n) end

  -- Begins a fast path: reads the clock, the fields and rows. Returns a list in which the rows are from the third place
  -- on, false for a missing one. A fast path changes `fields` itself and ends with `shard.save`; before its first write it
  -- may give up.
  function shard.open(...)
    if not NOW_US then tick() end
    next_look = nil
    return read_all(...)
  end

  -- The same for a fast path that uses fields of `more`.
  function shard.open_whole()
    take_more(shard.open('more')[3])
  end

  -- Sets `next` to an earlier time at which the carrier is to look. Returns whether `at` is earlier.
  local function looks_earlier(at)
    if not at or fields.next > 0 and at >= fields.next then return false end
    shard.set('next', at)
    return true
  end
  -- Announces the time `next`, and for how long a carrier leaves it to the waiter.
  function shard.wake_carrier()
    local grace = waiter.exists() and not shard.is_carrier_called() and waiter.GRACE_US or '0'
    publish('due ' .. KEY.tag .. ' ' .. whole(floor(until_us(fields.next))) .. ' ' .. grace)
  end

  -- Writes the fields and rows, given as names and values.
  function shard.save(...)
    local is_earlier = looks_earlier(next_look)
    call('HSET', KEY.shard, 'fields', packed_fields(fields), ...)
    if is_earlier then shard.wake_carrier() end
  end

  -- Changes fields of `keys`, at once: this transition may write to the keys that they name before it closes.
  function shard.write(values)
    for name, value in pairs(values) do fields[name] = value end
    call('HSET', KEY.shard, 'keys', packed_keys(fields))
  end

  -- Sets a row when the call closes.
  function shard.put(name, row)
    local n = #changes
    changes[n + 1], changes[n + 2] = name, row
  end

  -- Writes the changed fields and rows, and publishes the events. A call may close twice.
  function shard.close()
    order.save()
    lanes.save()
    if looks_earlier(next_look) then shard.wake_carrier() end
    if is_more_changed then set_unusual() end
    if is_changed then shard.put('fields', packed_fields(fields)) end
    if is_more_changed then shard.put('more', packed_more(more)) end
    sliced('HSET', KEY.shard, changes)
    events.close()
  end
end

-- Makes the carrier pass over the shard at `at` (ms) or earlier. The field `next` is the time of its next pass; `close`
-- lowers it and wakes the carrier if `at` is earlier.
function shard.wake_at(at) if not next_look or at < next_look then next_look = at end end

-- Makes the carrier pass over the shard at once, for what no waiter does. Then `next` has passed and ends with a half.
function shard.is_carrier_called() return fields.next <= NOW and fields.next % 1 > 0 end
function shard.call_carrier()
  if shard.is_carrier_called() then return end
  shard.set('next', NOW - 0.5)
  shard.wake_carrier()
end

-- Lowers a field that holds an earliest time to `at`, if that is earlier or the field is 0 for none.
function shard.earliest(name, at)
  if fields[name] == 0 or at < fields[name] then shard.set(name, at) end
end

-- Reads rows that were not read yet.
function shard.load_rows(names)
  local absent
  for i = 1, #names do
    local name = names[i]
    if rows[name] == nil then
      absent = absent or {}
      absent[#absent + 1] = name
    end
  end
  if not absent then return end
  local values = fetch(KEY.shard, absent)
  for i = 1, #absent do rows[absent[i]] = values[i] end
end

-- Must be called once jobs are written: from here on `fail` writes the counts even if the rest of the call fails.
function shard.commit() is_committed = is_begun end

-- Must be called after an error: closes the call, which writes the counts, if `commit` was called. Heads of keys are
-- written in any case, as the jobs that wait behind them are.
function shard.fail()
  pcall(order.save)
  if not is_committed then return end
  is_committed = false
  shard.close()
end
