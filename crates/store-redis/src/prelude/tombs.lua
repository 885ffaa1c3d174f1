-- Tombstones: what remains of done and cancelled jobs, in a hash per segment. The current segment and the two before it
-- are read. A segment ends after half of `keep`, or once it holds a third of `cap` entries and is a minute old, so every
-- tombstone lives for `keep`, or at least for two minutes.
--
-- Redis keeps a small hash as a list, which it searches from the start. A long value makes it a table, so each segment has
-- one more entry than tombstones: an empty name with a value that is long enough.
--
-- A tombstone is state, last settled lease, due, created, content hash, attempts, failures, and the token of the
-- submit if there is one. Its state has MAYBE_IN_FLIGHT added if a delivery began and was never settled.
-- Uses records, shard.
local MAYBE_IN_FLIGHT = 128
local LONG_VALUE = string.rep('-', 65)
local tombs = {}
-- Tombstones by locator, false for none; and the tombstones to be written.
local tombstones, ended

function tombs.start() tombstones, ended = {}, {} end

-- Returns the key of a segment. Lua makes a text of a number slowly.
function tombs.key(segment) return KEY.done .. whole(segment) end

function tombs.load(locs)
  if #locs == 0 then return end
  for _, loc in ipairs(locs) do tombstones[loc] = false end
  for segment = fields.segment, max(fields.segment - 2, 1), -1 do
    for i, tomb in ipairs(fetch(tombs.key(segment), locs)) do
      if tomb and not tombstones[locs[i]] then tombstones[locs[i]] = tomb end
    end
  end
end
-- How many tombstones of the current segment are counted. The field `segment_size` is that of the segment `sized`.
function tombs.counted() return fields.sized == fields.segment and fields.segment_size or 0 end
function tombs.count_more(n)
  shard.set('segment_size', max(0, tombs.counted() + n))
  shard.set('sized', fields.segment)
end

-- Whether any of these jobs has a tombstone.
function tombs.is_any_known(locs)
  for segment = fields.segment, max(fields.segment - 2, 1), -1 do
    if has_any(tombs.key(segment), locs) then return true end
  end
  return false
end
function tombs.get(loc)
  if tombstones[loc] == nil then tombs.load({loc}) end
  return tombstones[loc]
end

-- Reads a job, and returns its record and its job state. If it has no record: nil, nil and its tombstone, false for none.
function tombs.find(loc)
  local raw, s = jobs.get(loc)
  if raw then return raw, s end
  return nil, nil, tombs.get(loc)
end

function tombs.hash(tomb) return sub(tomb, 22, 29) end
function tombs.lease(tomb) return sub(tomb, 2, 9) end
function tombs.created(tomb) return sub(tomb, 16, 21) end
function tombs.attempts(tomb) return sub(tomb, 30, 33) end
function tombs.token(tomb) return sub(tomb, 38, 45) end
-- Returns the code of the state, and whether a delivery may still be in flight.
function tombs.state(tomb) return byte(tomb) % MAYBE_IN_FLIGHT, byte(tomb) >= MAYBE_IN_FLIGHT end

local function marked(s, code) return state.maybe_in_flight(s) and code + MAYBE_IN_FLIGHT or code end

-- Returns the tombstone of a job that ends with the state `code`. `lease` is the lease that ended it, or the last
-- settled one.
function tombs.of(raw, s, code, lease)
  local counts = s and sub(s, 9, 16) or NO_LEASE
  return char(marked(s, code)) .. lease .. jobs.due(raw, s) .. jobs.created(raw, s) .. record.hash(raw) .. counts
    .. record.token(raw)
end

-- Returns the tombstone of a done job, changed for a job that ends with the state `code`.
function tombs.with_state(tomb, s, code)
  local byte_of = marked(s, code)
  return byte_of == DONE and tomb or char(byte_of) .. sub(tomb, 2)
end

-- Collects the end of a job: `save` writes its tombstone, `jobs.save_removed` removes the job.
function tombs.add(loc, tomb, external)
  local n = #ended
  ended[n + 1], ended[n + 2] = loc, tomb
  jobs.remove(loc, external)
  tombstones[loc] = tomb
end

-- Removes the tombstones of keys whose jobs begin a new generation.
function tombs.remove(locs)
  if #locs == 0 then return end
  for segment = fields.segment, max(fields.segment - 2, 1), -1 do
    local n = call('HDEL', tombs.key(segment), unpack(locs))
    -- An emptied segment expires again from its next tombstone on.
    if segment == fields.segment and n > 0 then tombs.count_more(-n) end
  end
end

-- Whether the next tombstones begin a segment or are the first of one.
function tombs.begins_segment(keep, cap)
  local age = NOW - fields.segment_at
  local n = tombs.counted()
  return n == 0 or age < 0 or age >= keep / 2 or n >= cap / 3 and age >= 60000
end

-- Returns how many tombstones a segment has.
function tombs.count(segment) return max(call('HLEN', tombs.key(segment)) - 1, 0) end

local function next_segment(keep, cap)
  -- If the segment began before the clock was set back, its age counts from now, so that it does end.
  if fields.segment_at > NOW then shard.write({segment_at = NOW}) end
  local age = NOW - fields.segment_at
  local is_full = tombs.counted() >= cap / 3 and age >= 60000
  if age < keep / 2 and not is_full then return end
  -- Unlinked here, off the main thread. Expiry would free a large hash on the main thread; it is only for
  -- shards that are no longer used.
  local old = tombs.key(fields.segment - 2)
  -- Nothing was added to the old segment since the segment before the current one began.
  if fields.segment_was + keep > NOW then shard.count('tombstones_evicted_early', tombs.count(fields.segment - 2)) end
  -- At once: tombstones in a segment that the shard does not name would not be found.
  shard.write({segment_was = fields.segment_at, segment = fields.segment + 1, segment_at = NOW})
  call('UNLINK', old)
end

-- Returns how many tombstones of the current segment are not counted: transitions that failed half-way have left them.
function tombs.uncounted() return max(tombs.count(fields.segment) - tombs.counted(), 0) end

-- Writes the collected tombstones into the current segment, after beginning a new one if it is time for that. `keep` is
-- in ms.
function tombs.save(keep, cap)
  if #ended == 0 then return end
  next_segment(keep, cap)
  local key = tombs.key(fields.segment)
  sliced('HSET', key, ended)
  if tombs.counted() == 0 then
    call('HSET', key, '', LONG_VALUE)
    call('PEXPIREAT', key, fields.segment_at + keep + floor(keep / 2) + 60000)
  end
  tombs.count_more(#ended / 2)
end
