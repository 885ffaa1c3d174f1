-- The shard's hash: its fields, its rows, and how a call begins and closes.
--
-- The fields are numbers: the ledger (how many jobs are in each state, how many were ever accepted or purged, and how
-- many are missing), sizes, the times of the next looks, and switches. They are packed in two values: `fields`, which
-- every call reads first of all, and `more`, which is read when a call uses one of them. Changed values are written last
-- of all. If a command fails in between, for example at a key of another type, they are written if the jobs were: so a
-- call that fails half-way leaves index entries at most, which are hints.
--
-- The same hash has a row for each lane with jobs (lanes.lua), and for each known topic and some tenants (topics.lua),
-- and the name of the carrier that holds the shard.
-- Uses archive, events, lanes.
local shard, lanes, topics, destinations, paused_lanes, events, archive, tag_index = {}, {}, {}, {}, {}, {}, {}, {}
-- Fields by name, and rows by the lane's id or the topic's field.
local fields, rows
-- Rows to be written, and when the carrier is to look next.
local changes, next_look
-- The two values as they are stored, and which this call has changed; whether it has read the fields, and whether it
-- has changed jobs.
local stored, stored_more, is_changed, is_more_changed, is_begun, is_committed
do
  -- Each field is a double, which holds all whole numbers that occur.
  local FIELDS, MORE = '<' .. string.rep('d', 21), '<' .. string.rep('d', 19)
  local NO_FIELDS, NO_MORE = string.rep('\0', 21 * 8), string.rep('\0', 19 * 8)

  -- The two functions of a value have the same names in the same order, which is its layout.
  local function read_fields(f, value)
    f.accepted, f.delayed, f.ready, f.reserved, f.done, f.epoch, f.lease, f.next, f.slot, f.lease_at, f.dead_at,
      f.next_notice_at, f.next_firing_at, f.fronts, f.paused, f.paused_hosts, f.watched, f.archive, f.segment,
      f.segment_at, f.segment_size = read(FIELDS, value)
  end
  local function packed_fields(f)
    return pack(FIELDS, f.accepted, f.delayed, f.ready, f.reserved, f.done, f.epoch, f.lease, f.next, f.slot,
      f.lease_at, f.dead_at, f.next_notice_at, f.next_firing_at, f.fronts, f.paused, f.paused_hosts, f.watched,
      f.archive, f.segment, f.segment_at, f.segment_size)
  end
  local function read_more(f, value)
    f.dead, f.cancelled, f.purged, f.missing, f.replaced, f.lanes, f.topics, f.pauses, f.unqueued, f.segment_was,
      f.tombstones_evicted_early, f.attempts_segment, f.attempts_at, f.attempts_size, f.watched_since,
      f.archive_first, f.archive_bytes, f.archive_bound, f.archive_dropped = read(MORE, value)
  end
  local function packed_more(f)
    return pack(MORE, f.dead, f.cancelled, f.purged, f.missing, f.replaced, f.lanes, f.topics, f.pauses, f.unqueued,
      f.segment_was, f.tombstones_evicted_early, f.attempts_segment, f.attempts_at, f.attempts_size, f.watched_since,
      f.archive_first, f.archive_bytes, f.archive_bound, f.archive_dropped)
  end

  -- The fields of `more` are a table of their own, so that each call reads them anew.
  local is_of_more = {}
  read_more(is_of_more, NO_MORE)
  local more = {}
  fields = setmetatable({}, {__index = function(_, name)
    if not stored_more then
      stored_more = call('HGET', KEY.shard, 'more') or NO_MORE
      read_more(more, stored_more)
    end
    return more[name]
  end})

  function shard.start() is_begun, is_committed = false, false end

  -- Reads the clock, the fields, and rows if there are not too many.
  function shard.begin(row_names)
    if not NOW_US then tick() end
    is_begun, is_changed, is_more_changed, stored_more = true, false, false, nil
    changes, next_look, rows = {}, nil, {}
    lanes.begin()
    local n = row_names and #row_names or 0
    if n > 0 and n <= 4000 then
      local values = call('HMGET', KEY.shard, 'fields', unpack(row_names))
      stored = values[1] or NO_FIELDS
      for i = 1, n do rows[row_names[i]] = values[i + 1] end
    else
      stored = call('HGET', KEY.shard, 'fields') or NO_FIELDS
    end
    read_fields(fields, stored)
    events.begin(fields.watched)
    archive.begin(fields.archive)
  end

  function shard.set(name, value)
    if is_of_more[name] then
      -- Read before the first change.
      local _ = fields[name]
      more[name], is_more_changed = value, true
    else
      fields[name], is_changed = value, true
    end
  end
  function shard.count(name, n) shard.set(name, fields[name] + n) end

  -- Changes fields in the store at once, and nothing else that this call has changed. For fields that name a key to
  -- which this transition writes later.
  function shard.write(values)
    local all, all_more = {}, {}
    read_fields(all, stored)
    local _ = fields.lanes
    read_more(all_more, stored_more)
    for name, value in pairs(values) do
      shard.set(name, value)
      if is_of_more[name] then all_more[name] = value else all[name] = value end
    end
    stored, stored_more = packed_fields(all), packed_more(all_more)
    call('HSET', KEY.shard, 'fields', stored, 'more', stored_more)
  end

  -- Sets a row when the call closes.
  function shard.put(name, row)
    local n = #changes
    changes[n + 1], changes[n + 2] = name, row
  end

  -- Writes the changed fields and rows, and publishes the events.
  function shard.close()
    lanes.save()
    if next_look and (fields.next == 0 or next_look < fields.next) then
      shard.set('next', next_look)
      publish(string.format('due %s %.0f', KEY.tag, until_us(next_look)))
    end
    if is_changed then shard.put('fields', packed_fields(fields)) end
    if is_more_changed then shard.put('more', packed_more(more)) end
    sliced('HSET', KEY.shard, changes)
    events.close()
  end
end

-- Makes the carrier pass over the shard at `at` (ms) or earlier. The field `next` is the time of its next pass; `close`
-- lowers it and wakes the carrier if `at` is earlier.
function shard.wake_at(at) if not next_look or at < next_look then next_look = at end end

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

-- Must be called after an error: closes the call, which writes the counts, if `commit` was called.
function shard.fail()
  if not is_committed then return end
  is_committed = false
  shard.close()
end
