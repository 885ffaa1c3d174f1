-- Ending jobs: a tombstone each, in the current segment.
local NOW_SIX = pack('>I6', NOW)

-- Ends a job: its tombstone, then the record goes. `save_tombs` comes before `save`.
local function finish(loc, h, st, lease)
  local marked = lost(h) > 0 and st + DOUBT or st
  local tomb = char(marked) .. NOW_SIX .. lease .. sub(#h > HEAD and h or h .. NO_LEASE, 7, 34)
  buried[#buried + 1], buried[#buried + 2] = loc, tomb
  graves[loc] = tomb
  move(state(h), st, 1)
  drop(loc, h)
end

local function next_segment(keep, cap)
  local age = NOW - shard.segment_at
  local full = shard.segment_size >= cap / 3 and age >= 60000
  if age < keep / 2 and not full then return end
  -- Removed here, off the main thread, rather than by its expiry, which would free a large
  -- hash on it; that is for shards that nothing happens in any more.
  local old = K .. ':done:' .. (shard.segment - 2)
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
  local key = K .. ':done:' .. shard.segment
  sliced('HSET', key, buried)
  if shard.segment_size == 0 then
    call('PEXPIREAT', key, shard.segment_at + keep + math.floor(keep / 2) + 60000)
  end
  set('segment_size', shard.segment_size + #buried / 2)
end
