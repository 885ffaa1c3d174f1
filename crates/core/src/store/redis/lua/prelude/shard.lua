-- What the shard knows of itself, in one hash of numbers: the ledger (how many jobs are in
-- each state, and how many ever were accepted or purged), the carrier's epoch, when it will
-- look again, the last lease number, the tombstones' segment. A script reads the fields it
-- needs with one call, before all else, and writes those that changed with one, last.
local SHARD = K .. ':shard'
local STATE_NAMES = {'delayed', 'ready', 'reserved', 'done', 'dead', 'cancelled'}
local shard, changes, tally, soonest = {}, {}, {}, nil

local function open(...)
  local values = call('HMGET', SHARD, ...)
  for i, name in ipairs({...}) do shard[name] = tonumber(values[i] or 0) end
end
local function set(name, value)
  shard[name] = value
  changes[#changes + 1], changes[#changes + 2] = name, value
end

local function count(name, n) tally[name] = (tally[name] or 0) + n end
local function move(from, to, n)
  count(STATE_NAMES[from], -n)
  count(STATE_NAMES[to], n)
end

-- `next` is when the shard's carrier will look again. A moment before it lowers it.
local function moment(at) if not soonest or at < soonest then soonest = at end end

local function close()
  for name, n in pairs(tally) do
    if n ~= 0 then set(name, shard[name] + n) end
  end
  if soonest and (shard.next == 0 or soonest < shard.next) then
    set('next', soonest)
    tell('due ' .. tag() .. ' ' .. math.max(0, soonest - NOW))
  end
  if #changes > 0 then call('HSET', SHARD, unpack(changes)) end
end
