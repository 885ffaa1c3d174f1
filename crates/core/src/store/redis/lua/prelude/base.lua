-- What every script begins with: the shard, its clock, the words, and wake-ups.
-- KEYS[1] is the shard's base, "<prefix>:{<tag>}"; every other key hangs below it.

local K = KEYS[1]
local call, pack, read = redis.call, struct.pack, struct.unpack
local sub, byte, char = string.sub, string.byte, string.char

-- The store's clock, read once. NOW is rounded down to compare with ("is it due?"),
-- NOW_UP is rounded up to add to, so that nothing is ever early.
local time = call('TIME')
local NOW_US = time[1] * 1000000 + time[2]
local NOW, NOW_UP = math.floor(NOW_US / 1000), math.ceil(NOW_US / 1000)

local DELAYED, READY, RESERVED, DONE, DEAD, CANCELLED = 1, 2, 3, 4, 5, 6
local CANCEL_REQUESTED, EXTERNAL = 1, 2

local function append(lists, name, ...)
  local list = lists[name]
  if not list then list = {}; lists[name] = list end
  for _, v in ipairs({...}) do list[#list + 1] = v end
end

-- A call with a long list, in slices that unpack can carry (it fails near 8,000). The
-- slices are even, so that pairs stay together.
local function sliced(command, key, list)
  local answer
  for i = 1, #list, 4000 do
    answer = call(command, key, unpack(list, i, math.min(i + 3999, #list)))
  end
  return answer
end

-- Wake-ups are hints, told once per script.
local function tell(message) call('PUBLISH', string.match(K, '^(.-):{') .. ':wake', message) end
local function tag() return string.match(K, '{(.*)}') end

-- `next` is when the shard's carrier will look again. A moment before it lowers it.
local soonest
local function moment(at) if not soonest or at < soonest then soonest = at end end
local function write_moment()
  if not soonest then return end
  local planned = call('GET', K .. ':next')
  if not planned or soonest < tonumber(planned) then
    call('SET', K .. ':next', soonest)
    tell('due ' .. tag() .. ' ' .. math.max(0, soonest - NOW))
  end
end
