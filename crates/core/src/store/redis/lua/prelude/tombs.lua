-- Tombstones: a hash per segment; the current one and the two before it are looked at.
-- A segment ends after half of `keep`, or once it holds a third of `cap` entries and is
-- a minute old; so every tombstone lives for `keep`, or at least for two minutes.
-- Its state has DOUBT added where a hand-over was begun and never settled.
local TOMB = '>Bc8I6I8I6I6I4I4'
local DOUBT = 128
local graves, buried, segment = {}, {}, nil

local function current_segment()
  if not segment then
    local meta = call('HMGET', K .. ':counters', 'segment', 'segment_at', 'segment_size')
    segment = {no = tonumber(meta[1] or 0), at = tonumber(meta[2] or 0), size = tonumber(meta[3] or 0)}
  end
  return segment
end

local function parse_tomb(raw)
  local state, hash, at, lease = read(TOMB, raw)
  return {raw = raw, st = state % DOUBT, doubt = state >= DOUBT, hash = hash, at = at, lease = lease}
end

-- Reads many tombstones at once; `tomb_get` finds them afterwards.
local function tombs_load(locs)
  local no = current_segment().no
  for s = no, math.max(no - 2, 0), -1 do
    for i = 1, #locs, 4000 do
      local raws = call('HMGET', K .. ':done:' .. s, unpack(locs, i, math.min(i + 3999, #locs)))
      for k, raw in ipairs(raws) do
        local loc = locs[i + k - 1]
        if raw and not graves[loc] then graves[loc] = parse_tomb(raw) end
      end
    end
  end
  for _, loc in ipairs(locs) do graves[loc] = graves[loc] or false end
end

local function tomb_get(loc)
  if graves[loc] == nil then tombs_load({loc}) end
  return graves[loc]
end

-- Ends a job: its tombstone, then the record goes. `save_tombs` comes before `save`.
local function finish(loc, j, state, lease)
  local r = run(j)
  local marked = r.lost > 0 and state + DOUBT or state
  local raw = pack(TOMB, marked, content_hash(j), NOW, lease, j.created, j.due, r.attempts, r.failures)
  buried[#buried + 1], buried[#buried + 2] = loc, raw
  graves[loc] = {raw = raw, st = state, doubt = r.lost > 0, hash = content_hash(j), at = NOW, lease = lease}
  move(j.st, state)
  drop(loc, j)
end

local function next_segment(keep, cap)
  local seg = current_segment()
  local age = NOW - seg.at
  local full = seg.size >= cap / 3 and age >= 60000
  if age < keep / 2 and not full then return seg end
  segment = {no = seg.no + 1, at = NOW, size = 0}
  call('HSET', K .. ':counters', 'segment', segment.no, 'segment_at', NOW, 'segment_size', 0)
  -- Removed here, off the main thread, rather than by its expiry, which would free a large
  -- hash on it; that is for shards that nothing happens in any more.
  local old = K .. ':done:' .. (segment.no - 3)
  if full then count('forgotten_early', call('HLEN', old)) end
  call('UNLINK', old)
  return segment
end

local function save_tombs(keep, cap)
  if #buried == 0 then return end
  local seg = next_segment(keep, cap)
  local key = K .. ':done:' .. seg.no
  sliced('HSET', key, buried)
  if seg.size == 0 then call('PEXPIREAT', key, seg.at + keep + math.floor(keep / 2) + 60000) end
  count('segment_size', #buried / 2)
end
