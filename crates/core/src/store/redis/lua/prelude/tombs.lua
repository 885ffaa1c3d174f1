-- Tombstones: a hash per segment; the current one and the two before it are looked at.
-- A segment ends after half of `keep`, or once it holds a third of `cap` entries and is
-- a minute old; so every tombstone lives for `keep`, or at least for two minutes.
--
-- A tombstone is state, time, last settled lease, and of the head due, created, content
-- hash, attempts, failures. Its state has DOUBT added where a hand-over was begun and never
-- settled. `open` must have read SEGMENT.
local DOUBT = 128
local graves, buried = {}, {}

-- Reads many tombstones at once; `graves` has them afterwards, or false.
local function tombs_load(locs)
  for _, loc in ipairs(locs) do graves[loc] = false end
  for s = shard.segment, math.max(shard.segment - 2, 0), -1 do
    for i, raw in ipairs(fetch(K .. ':done:' .. s, locs)) do
      graves[locs[i]] = graves[locs[i]] or raw
    end
  end
end
local function tomb_get(loc)
  if graves[loc] == nil then tombs_load({loc}) end
  return graves[loc]
end

local function content_hash(h) return sub(h, 19, 26) end
local function tomb_hash(tomb) return sub(tomb, 28, 35) end
local function tomb_lease(tomb) return sub(tomb, 8, 15) end
local function tomb_state(tomb) return byte(tomb) % DOUBT, byte(tomb) >= DOUBT end
