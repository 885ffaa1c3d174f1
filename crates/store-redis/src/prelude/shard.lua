-- The shard's hash: its fields, its rows, and how a call begins and closes.
--
-- Fields are the ledger (how many jobs are in each state, how many were ever accepted or purged, and how many are
-- missing), the numbers of lanes and topics with jobs, the carrier's epoch and next pass, the last lease number, the
-- tombstones' segment, the first slot, when the first lease ends and the first job died, and those of other pieces. A
-- call reads the fields that it needs with one command, first of all, and writes the changed ones with one command, last
-- of all. If a command fails in between, for example at a key of another type, the counts are written if the jobs were:
-- so a call that fails half-way leaves at most index entries, which are hints.
--
-- The same hash has a row for each lane with jobs (lanes.lua), and for each known topic and some tenants (topics.lua).
-- Uses archive, events, lanes.
local shard, lanes, topics, destinations, paused_lanes, events, archive, tag_index = {}, {}, {}, {}, {}, {}, {}, {}
-- Fields by name, and rows by the lane's id or the topic's field.
local fields, rows
local changes, tally, next_look
-- Whether this call has read the fields, and whether it has changed jobs.
local is_begun, is_committed

function shard.start() is_begun, is_committed = false, false end

-- Reads the clock, the fields `names`, 0 for missing ones, and the rows `row_names` unless there are more than about
-- 4,000. Forgets earlier changes and rows.
function shard.begin(names, row_names)
  if not NOW_US then tick() end
  is_begun = true
  fields, changes, tally, next_look = {}, {}, {}, nil
  rows = {}
  lanes.begin()
  local wanted, n = names, #names
  if row_names and #row_names > 0 and #row_names + n <= 4000 then
    wanted = {unpack(names)}
    for i, name in ipairs(row_names) do wanted[n + i] = name end
  end
  local values = call('HMGET', KEY.shard, events.FIELD, archive.FIELD, unpack(wanted))
  for i = 1, n do fields[names[i]] = tonumber(values[i + 2] or 0) end
  for i = n + 1, #wanted do rows[wanted[i]] = values[i + 2] end
  fields.watched, fields.archive = tonumber(values[1] or 0), tonumber(values[2] or 0)
  events.begin(fields.watched)
  archive.begin(fields.archive)
end

function shard.set(name, value)
  fields[name] = value
  local n = #changes
  changes[n + 1], changes[n + 2] = name, value
end

-- Writes fields (name, value, …) at once, for fields that name a key to which this transition writes later.
function shard.write(...)
  local names = {...}
  for i = 1, #names, 2 do fields[names[i]] = names[i + 1] end
  call('HSET', KEY.shard, ...)
end

function shard.count(name, n) tally[name] = (tally[name] or 0) + n end

-- Makes the carrier pass over the shard at `at` (ms) or earlier. The field `next` is the time of its next pass; `close`
-- lowers it and wakes the carrier if `at` is earlier.
function shard.wake_at(at) if not next_look or at < next_look then next_look = at end end

-- Lowers a field that holds an earliest time to `at`, if that is earlier or the field is 0 for none.
function shard.earliest(name, at)
  if fields[name] == 0 or at < fields[name] then shard.set(name, at) end
end

-- Reads rows that were not read yet.
function shard.load_rows(names)
  local absent = {}
  for _, name in ipairs(names) do if rows[name] == nil then absent[#absent + 1] = name end end
  for i, row in ipairs(fetch(KEY.shard, absent)) do rows[absent[i]] = row end
end

-- Must be called once jobs are written: from here on `fail` writes the counts even if the rest of the call fails.
function shard.commit() is_committed = is_begun end

-- Must be called after an error: closes the call, which writes the counts, if `commit` was called.
function shard.fail()
  if not is_committed then return end
  is_committed = false
  shard.close()
end

-- Writes the changed fields and rows, wakes the carrier if its next pass is too late, and publishes the events.
function shard.close()
  lanes.save()
  for name, n in pairs(tally) do
    if n ~= 0 then shard.set(name, fields[name] + n) end
  end
  tally = {}
  if next_look and (fields.next == 0 or next_look < fields.next) then
    shard.set('next', next_look)
    publish(string.format('due %s %.0f', KEY.tag, until_us(next_look)))
  end
  sliced('HSET', KEY.shard, changes)
  events.close()
end
