-- What a head says of attempts that are over: lost leases, the last settled one, the last
-- failure and the reason of a dead job.

-- When a job came here: its record tells, since an imported one was created before.
local function arrived(loc, h) return (read('>I6', records[loc] or call('HGET', POOL, loc) or h, 13)) end

local function lost(h) return #h > HEAD and byte(h, 35) or 0 end
local function settled(h) return #h > HEAD and sub(h, 58, 65) or NO_LEASE end
local function reason(h) return #h > HEAD and sub(h, 80 + byte(h, 78)) or '' end

-- One more lease lost in a row.
local function with_loss(h, st) return char(st) .. sub(h, 2, 34) .. char(lost(h) + 1) .. sub(h, 36) end
local function with_reason(h, why) return sub(h, 1, 78) .. char(#why) .. sub(h, 80, 79 + byte(h, 78)) .. why end

-- A settled lease, and a later due time.
local function with_settled(h, st, lease) return char(st) .. sub(h, 2, 57) .. lease .. sub(h, 66) end
local function with_due(h, at) return sub(h, 1, 6) .. pack('>I6', at) .. sub(h, 13) end

-- One more failure. `last` is the failed attempt and the reason, packed as a head keeps them.
local function with_failure(h, last)
  return sub(h, 1, 30) .. pack('>I4', read('>I4', h, 31) + 1) .. '\0' .. sub(h, 36, 65) .. last
end
