-- Tombstones: a hash per segment; the current one and the two before it are looked at.
-- A segment ends after half of `keep`, or once it holds a third of `cap` entries and is
-- a minute old; so every tombstone lives for `keep`, or at least for two minutes.
--
-- A tombstone is state, last settled lease, due, created, content hash, attempts, failures.
-- Its state has DOUBT added where a hand-over was begun and never settled. `begin` must have
-- read `segment`.
local DOUBT = 128
local graves, buried, gone, unlinks

-- Reads many tombstones at once; `graves` has them afterwards, or false.
local function tombs_load(locs)
  if #locs == 0 then return end
  for _, loc in ipairs(locs) do graves[loc] = false end
  for s = shard.segment, max(shard.segment - 2, 0), -1 do
    for i, raw in ipairs(fetch(KEY.done .. s, locs)) do
      if raw and not graves[locs[i]] then graves[locs[i]] = raw end
    end
  end
end
local function tomb_get(loc)
  if graves[loc] == nil then tombs_load({loc}) end
  return graves[loc]
end

local function tomb_hash(tomb) return sub(tomb, 22, 29) end
local function tomb_lease(tomb) return sub(tomb, 2, 9) end
local function tomb_state(tomb) return byte(tomb) % DOUBT, byte(tomb) >= DOUBT end

-- What is kept of a job that ends. `lease` is the one that ended it, or the last settled one.
local function tomb_of(raw, r, st, lease)
  local marked = lost(r) > 0 and st + DOUBT or st
  local counts = r and sub(r, 9, 16) or NO_LEASE
  return char(marked) .. lease .. due_six(raw, r) .. created_six(raw, r) .. content_hash(raw) .. counts
end

-- A job goes; with `tomb` it is remembered.
local function bury(loc, tomb, external)
  local n = #buried
  buried[n + 1], buried[n + 2] = loc, tomb
  gone[#gone + 1] = loc
  graves[loc], runs[loc], records[loc] = tomb, false, false
  if external then unlinks[#unlinks + 1] = KEY.body .. loc end
end
local function drop(loc, external)
  gone[#gone + 1] = loc
  runs[loc], records[loc] = false, false
  if external then unlinks[#unlinks + 1] = KEY.body .. loc end
end

local function next_segment(keep, cap)
  local age = NOW - shard.segment_at
  local full = shard.segment_size >= cap / 3 and age >= 60000
  if age < keep / 2 and not full then return end
  -- Removed here, off the main thread, rather than by its expiry, which would free a large
  -- hash on it; that is for shards that nothing happens in any more.
  local old = KEY.done .. (shard.segment - 2)
  -- Nothing was added to it since the one before the current began.
  if shard.segment_was + keep > NOW then count('forgotten_early', call('HLEN', old)) end
  set('segment_was', shard.segment_at)
  set('segment', shard.segment + 1)
  set('segment_at', NOW)
  set('segment_size', 0)
  call('UNLINK', old)
end

local function save_tombs(keep, cap)
  if #buried == 0 then return end
  next_segment(keep, cap)
  local key = KEY.done .. shard.segment
  sliced('HSET', key, buried)
  if shard.segment_size == 0 then
    call('PEXPIREAT', key, shard.segment_at + keep + floor(keep / 2) + 60000)
  end
  set('segment_size', shard.segment_size + #buried / 2)
end

-- Records that go: first what was submitted, then what tells where the job stands.
local function save_drops()
  events.know()
  sliced('HDEL', KEY.pool, gone)
  sliced('HDEL', KEY.runs, gone)
  for _, key in ipairs(unlinks) do call('UNLINK', key) end
end
