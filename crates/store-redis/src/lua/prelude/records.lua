-- Records: a job's record lies in `pool` as it was submitted and is never written again. What
-- happens to the job is its run, in `runs` from the first hand-over on.
--
-- A record is due, created (6 bytes each), flags, timeout (4), content hash (8), lane (8),
-- the id's length, id, payload. A large payload has a key of its own; then its size stands
-- there, and the flag EXTERNAL.
--
-- A run is state, flags, due (6, 0 for the record's), attempts, failures (4 each), leases
-- lost in a row, lease and its bits (8 each), deadline (6), the last settled lease (8),
-- created (6, 0 for the record's), the last failed attempt (6, 2, 4), the lengths of its
-- error and of the reason, and these. Behind them, of a job that was moved by its name, the
-- mark of the last such call: its token (8), and the due time by which it made the job ready,
-- or 0 (6).
local RECORD, RUN = 34, 67
local CANCEL_REQUESTED, EXTERNAL = 1, 2
local NO_LEASE, NO_TIME, NO_ATTEMPT = string.rep('\0', 8), string.rep('\0', 6), string.rep('\0', 14)
local runs, records, writes

local function record(raw)
  return raw and #raw >= RECORD and #raw >= RECORD + byte(raw, RECORD) and raw
end
local function run(raw) return raw and #raw >= RUN and raw end

local function forget_loaded() runs, records, writes = {}, {}, {} end

-- Reads many jobs at once; afterwards `records` has them, or false, and `runs` too where
-- they have one. What is too short for what it must hold is passed over like a missing one,
-- so that it stops nobody else's jobs. A run without its record counts for nothing.
local function load(locs)
  local own, raws = fetch(KEY.runs, locs), fetch(KEY.pool, locs)
  for i = 1, #locs do
    local loc, raw, r = locs[i], record(raws[i]), own[i]
    if r and #r < RUN then raw = false end
    records[loc], runs[loc] = raw, raw and r
  end
end

-- Runs alone, where the jobs were handed over before and their names do not matter.
local function load_runs(locs)
  local own = fetch(KEY.runs, locs)
  for i = 1, #locs do runs[locs[i]] = run(own[i]) end
end

local function is_external(raw) return bit.band(byte(raw, 13), EXTERNAL) ~= 0 end
local function lane_of(raw) return sub(raw, 26, 33) end
local function content_hash(raw) return sub(raw, 18, 25) end

local function state(r) return byte(r) end
local function lost(r) return r and byte(r, 17) or 0 end
local function settled(r) return r and sub(r, 40, 47) or NO_LEASE end
local function deadline(r) return (read('>I6', r, 34)) end
local function is_cancel_requested(r) return bit.band(byte(r, 2), CANCEL_REQUESTED) ~= 0 end
local function reason(r) return sub(r, RUN + 1 + byte(r, 66), RUN + byte(r, 66) + byte(r, 67)) end
local function mark(r) return sub(r, RUN + 1 + byte(r, 66) + byte(r, 67)) end

-- The due time that counts, as six bytes.
local function due_six(raw, r)
  local own = r and sub(r, 3, 8)
  return own and own ~= NO_TIME and own or sub(raw, 1, 6)
end
local function created_six(raw, r)
  local own = r and sub(r, 48, 53)
  return own and own ~= NO_TIME and own or sub(raw, 7, 12)
end

local function with_cancel(r) return char(byte(r), bit.bor(byte(r, 2), CANCEL_REQUESTED)) .. sub(r, 3) end
local function with_deadline(r, at) return sub(r, 1, 33) .. six(at) .. sub(r, 40) end
local function with_due(r, at) return sub(r, 1, 2) .. six(at) .. sub(r, 9) end
local function with_settled(r, st, lease) return char(st) .. sub(r, 2, 39) .. lease .. sub(r, 48) end
-- One more lease lost in a row.
local function with_loss(r, st) return char(st) .. sub(r, 2, 16) .. char(byte(r, 17) + 1) .. sub(r, 18) end
local function with_reason(r, why) return sub(r, 1, 66) .. char(#why) .. sub(r, 68, RUN + byte(r, 66)) .. why .. mark(r) end
-- One more failure. `last` is the failed attempt and the reason, packed as a run ends with them.
local function with_failure(r, last)
  return sub(r, 1, 12) .. pack('>I4', read('>I4', r, 13) + 1) .. '\0' .. sub(r, 18, 53) .. last .. mark(r)
end

local function put(loc, r)
  runs[loc] = r
  local n = #writes
  writes[n + 1], writes[n + 2] = loc, r
end
-- Carries out what `put` has gathered.
local function save() sliced('HSET', KEY.runs, writes) end
