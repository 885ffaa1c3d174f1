-- Records: a job's record lies in `pool` as it was submitted, and is never written again.
-- What changes is its head, the record's first bytes. From the first change on the head has
-- an entry of its own in `heads`, which then counts instead.
--
-- A head is state, flags, timeout, due, created, content hash, and after a first reserve the
-- run section: attempts, failures, leases lost in a row; lease and its bits, deadline; the
-- last settled lease; the last failed attempt with its error, the reason. The record goes on
-- with lengths, lane (topic and origin), id, payload. A large payload has a key of its own;
-- then its size stands there.
local HEADS, POOL, HEAD = K .. ':heads', K .. ':pool', 26
local NO_RUN, NO_LEASE = string.rep('\0', 53), string.rep('\0', 8)
local CANCEL_REQUESTED, EXTERNAL = 1, 2
local heads, records = {}, {}
local writes = {}

local function record(raw)
  return raw and #raw >= 30 and #raw >= 30 + byte(raw, 29) * 256 + byte(raw, 30) and raw
end
local function head(raw) return (#raw == HEAD or #raw >= HEAD + 53) and raw end

-- Reads many jobs at once; afterwards `heads` and `records` have them, or false. What is too
-- short for what it must hold is passed over like a missing one, so that it stops nobody
-- else's jobs.
local function load(locs)
  local own, raws = fetch(HEADS, locs), fetch(POOL, locs)
  for i, loc in ipairs(locs) do
    local raw = raws[i] and record(raws[i])
    records[loc] = raw
    heads[loc] = raw and (own[i] and head(own[i]) or not own[i] and sub(raw, 1, HEAD))
  end
end

-- Heads alone, where the jobs were handed over before and their names do not matter.
local function load_heads(locs)
  for i, raw in ipairs(fetch(HEADS, locs)) do
    if raw then heads[locs[i]] = head(raw) end
  end
end

local function state(h) return byte(h) end
local function due(h) return (read('>I6', h, 7)) end
local function has(h, flag) return bit.band(byte(h, 2), flag) ~= 0 end
local function with_state(h, st) return char(st) .. sub(h, 2) end

local function put(loc, h)
  heads[loc] = h
  writes[#writes + 1], writes[#writes + 2] = loc, h
end
-- Carries out what `put` has gathered.
local function save() sliced('HSET', HEADS, writes) end
