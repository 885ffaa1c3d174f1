-- What every script begins with: the shard, its clock, the words, and wake-ups.
-- KEYS[1] is the shard's base, "<prefix>:{<tag>}"; every other key hangs below it.
--
-- A string is dear here: Redis's Lua hashes each byte of every string it makes. So big ones
-- are made as seldom as can be, and jobs are worked on as short packed strings, not tables.
local K = KEYS[1]
local call, pack, read = redis.call, struct.pack, struct.unpack
local sub, byte, char = string.sub, string.byte, string.char

-- The store's clock, read once. NOW is rounded down to compare with ("is it due?"),
-- NOW_UP is rounded up to add to, so that nothing is ever early.
local time = call('TIME')
local NOW_US = time[1] * 1000000 + time[2]
local NOW, NOW_UP = math.floor(NOW_US / 1000), math.ceil(NOW_US / 1000)

local DELAYED, READY, RESERVED, DONE, DEAD, CANCELLED = 1, 2, 3, 4, 5, 6

local function append(lists, name, value)
  local list = lists[name]
  if list then list[#list + 1] = value else lists[name] = {value} end
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

-- Fields of a hash, one for each locator; false for none.
local function fetch(key, locs)
  if #locs == 0 then return {} end
  if #locs <= 4000 then return call('HMGET', key, unpack(locs)) end
  local all = {}
  for i = 1, #locs, 4000 do
    for _, value in ipairs(call('HMGET', key, unpack(locs, i, math.min(i + 3999, #locs)))) do
      all[#all + 1] = value
    end
  end
  return all
end

-- Wake-ups are hints, told once per script.
local function tell(message) call('PUBLISH', string.match(K, '^(.-):{') .. ':wake', message) end
local function tag() return string.match(K, '{(.*)}') end
