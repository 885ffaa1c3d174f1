-- The shard's hash: its fields, its rows, and how a call begins and closes.
--
-- The fields are numbers: the ledger (how many jobs are in each state, how many were ever accepted or purged, and how
-- many are missing), sizes, the times of the next looks, and switches. They are one packed value, under `fields`, which
-- a call reads first of all and, if one has changed, writes last of all. If a command fails in between, for example at a
-- key of another type, the fields are written if the jobs were: so a call that fails half-way leaves index entries at
-- most, which are hints.
--
-- The same hash has a row for each lane with jobs (lanes.lua), and for each known topic and some tenants (topics.lua),
-- and the name of the carrier that holds the shard.
-- Uses archive, events, lanes.
local shard, lanes, topics, destinations, paused_lanes, events, archive, tag_index = {}, {}, {}, {}, {}, {}, {}, {}
-- Fields by name, and rows by the lane's id or the topic's field.
local fields, rows
-- Rows to be written, and when the carrier is to look next.
local changes, next_look
-- The fields as they are stored, whether this call has read them, whether it has changed some, and whether it has
-- changed jobs.
local stored, is_begun, is_changed, is_committed
do
  -- Each is a double, which holds all whole numbers that occur.
  local FORMAT = '<' .. string.rep('d', 40)
  local NONE = string.rep('\0', 40 * 8)

  -- Both functions have the same names in the same order, which is the layout.
  local function unpack_into(f, value)
    f.accepted, f.delayed, f.ready, f.reserved, f.dead, f.done, f.cancelled, f.purged, f.missing, f.replaced,
    f.lanes, f.topics, f.paused, f.pauses, f.paused_hosts, f.fronts, f.unqueued,
    f.epoch, f.lease, f.next, f.lease_at, f.dead_at, f.next_notice_at, f.next_firing_at, f.slot,
    f.segment, f.segment_at, f.segment_was, f.segment_size, f.tombstones_evicted_early,
    f.attempts_segment, f.attempts_at, f.attempts_size, f.watched, f.watched_since,
    f.archive, f.archive_first, f.archive_bytes, f.archive_bound, f.archive_dropped = read(FORMAT, value)
    return f
  end
  local function packed(f)
    return pack(FORMAT,
    f.accepted, f.delayed, f.ready, f.reserved, f.dead, f.done, f.cancelled, f.purged, f.missing, f.replaced,
    f.lanes, f.topics, f.paused, f.pauses, f.paused_hosts, f.fronts, f.unqueued,
    f.epoch, f.lease, f.next, f.lease_at, f.dead_at, f.next_notice_at, f.next_firing_at, f.slot,
    f.segment, f.segment_at, f.segment_was, f.segment_size, f.tombstones_evicted_early,
    f.attempts_segment, f.attempts_at, f.attempts_size, f.watched, f.watched_since,
    f.archive, f.archive_first, f.archive_bytes, f.archive_bound, f.archive_dropped)
  end

  fields = unpack_into({}, NONE)

  function shard.start() is_begun, is_committed = false, false end

  -- Reads the clock, the fields, and rows if there are not too many.
  function shard.begin(row_names)
    if not NOW_US then tick() end
    is_begun, is_changed, changes, next_look, rows = true, false, {}, nil, {}
    lanes.begin()
    local n = row_names and #row_names or 0
    if n > 0 and n <= 4000 then
      local values = call('HMGET', KEY.shard, 'fields', unpack(row_names))
      stored = values[1] or NONE
      for i = 1, n do rows[row_names[i]] = values[i + 1] end
    else
      stored = call('HGET', KEY.shard, 'fields') or NONE
    end
    unpack_into(fields, stored)
    events.begin(fields.watched)
    archive.begin(fields.archive)
  end

  function shard.set(name, value) fields[name], is_changed = value, true end
  function shard.count(name, n) fields[name], is_changed = fields[name] + n, true end

  -- Changes fields in the store at once, and nothing else that this call has changed. For fields that name a key to
  -- which this transition writes later.
  function shard.write(values)
    local all = unpack_into({}, stored)
    for name, value in pairs(values) do fields[name], all[name] = value, value end
    stored = packed(all)
    call('HSET', KEY.shard, 'fields', stored)
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
    if is_changed then shard.put('fields', packed(fields)) end
    sliced('HSET', KEY.shard, changes)
    events.close()
  end
end

-- Makes the carrier look at the shard at `at` (ms) or earlier. The field `next` is the time of its next look;
-- `close` lowers it and wakes the carrier.
function shard.wake_at(at) if not next_look or at < next_look then next_look = at end end

-- Lowers a field that holds the earliest time of something; 0 means none.
function shard.earliest(name, at)
  if fields[name] == 0 or at < fields[name] then shard.set(name, at) end
end

-- Reads rows that were not read yet.
function shard.load_rows(names)
  local absent = {}
  for _, name in ipairs(names) do if rows[name] == nil then absent[#absent + 1] = name end end
  for i, row in ipairs(fetch(KEY.shard, absent)) do rows[absent[i]] = row end
end

-- From here on what was counted holds, also if the rest of the call fails. Called when jobs have been written.
function shard.commit() is_committed = is_begun end

-- After a command has failed: writes what holds.
function shard.fail()
  if not is_committed then return end
  is_committed = false
  shard.close()
end
