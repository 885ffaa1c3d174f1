-- Leases by deadline, and what a head says of its lease. A receipt is the lease's number, 8
-- bytes, and its random bits, 8 bytes.
local function receipt(h) return sub(h, 36, 51) end
local function deadline(h) return (read('>I6', h, 52)) end
local function with_deadline(h, at) return sub(h, 1, 51) .. pack('>I6', at) .. sub(h, 58) end
local function with_cancel(h) return char(byte(h), bit.bor(byte(h, 2), CANCEL_REQUESTED)) .. sub(h, 3) end

local function lease_first(limit)
  return call('ZRANGE', K .. ':leases', '-inf', NOW, 'BYSCORE', 'LIMIT', 0, limit)
end
local function lease_add(list) sliced('ZADD', K .. ':leases', list) end
local function lease_remove(list) sliced('ZREM', K .. ':leases', list) end
