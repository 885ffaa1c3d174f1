-- What every edge begins with: the shard, its clock, the words, and wake-ups.
-- K is the shard's base, "<prefix>:{<tag>}"; every other key hangs below it. All that is
-- known of one call lies in locals of these files and is made anew by `begin`.
--
-- A string is dear here: Redis's Lua hashes each byte of every string it makes. So big ones
-- are made as seldom as can be, equal ones once, and jobs are worked on as short packed
-- strings, not tables. A call into Redis is dear too: many jobs share one.
local call, pack, read = redis.call, struct.pack, struct.unpack
local sub, byte, char, concat = string.sub, string.byte, string.char, table.concat
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

-- DELAYED is also what a run says of a ready job: only the indexes know the difference.
local DELAYED, READY, RESERVED, DONE, DEAD, CANCELLED = 1, 2, 3, 4, 5, 6

local K, KEY
-- The store's clock, read once a call. NOW is rounded down to compare with ("is it due?"),
-- NOW_UP is rounded up to add to, so that nothing is ever early.
local NOW_US, NOW, NOW_UP

local function tick()
  local time = call('TIME')
  NOW_US = time[1] * 1000000 + time[2]
  NOW, NOW_UP = floor(NOW_US / 1000), ceil(NOW_US / 1000)
end

-- The names of a shard's keys, made once for each shard.
local known_keys = {}
local function keys_of(base)
  local keys = {
    shard = base .. ':shard', pool = base .. ':pool', runs = base .. ':runs', turns = base .. ':turns',
    due = base .. ':due:', slot = base .. ':slot:', slots = base .. ':slots', void = base .. ':void:',
    ready = base .. ':ready:', lanes = base .. ':lanes', pulls = base .. ':pulls', leases = base .. ':leases', parked = base .. ':parked',
    batches = base .. ':batches', outbox = base .. ':outbox', caller = base .. ':caller:', dead = base .. ':dead', done = base .. ':done:', body = base .. ':body:',
    topics = base .. ':topics', index = base .. ':index', late = base .. ':late:', attempts = base .. ':attempts:',
    wake = string.match(base, '^(.-):{') .. ':wake', events = string.match(base, '^(.-):{') .. ':events', policies = string.match(base, '^(.-):{') .. ':policies', tag = string.match(base, '{(.*)}'),
  }
  known_keys[base] = keys
  return keys
end

-- A call with a long list, in slices that unpack can carry (it fails near 8,000). The
-- slices are even, so that pairs stay together.
local function sliced(command, key, list)
  local n, answer = #list, nil
  if n <= 4000 then return n > 0 and call(command, key, unpack(list)) or nil end
  for i = 1, n, 4000 do answer = call(command, key, unpack(list, i, min(i + 3999, n))) end
  return answer
end

-- Fields of a hash, one for each name; false for none.
local function fetch(key, names)
  local n = #names
  if n == 0 then return {} end
  if n <= 4000 then return call('HMGET', key, unpack(names)) end
  local all = {}
  for i = 1, n, 4000 do
    for _, value in ipairs(call('HMGET', key, unpack(names, i, min(i + 3999, n)))) do all[#all + 1] = value end
  end
  return all
end

local function append(lists, name, value)
  local list = lists[name]
  if list then list[#list + 1] = value else lists[name] = {value} end
end

-- Many at once; `values` may become the list.
local function append_all(lists, name, values)
  local list = lists[name]
  if not list then
    lists[name] = values
    return
  end
  local n = #list
  for i = 1, #values do list[n + i] = values[i] end
end

local function six(number) return pack('>I6', number) end

-- The lowest score of a sorted set, once these are gone; 0 for none. It is read before they are taken
-- away: in a slot that moves to another server a set that was emptied cannot be read any more.
local function first_score(key, leaving)
  local is_leaving = {}
  for _, member in ipairs(leaving or is_leaving) do is_leaving[member] = true end
  local head = call('ZRANGE', key, 0, leaving and #leaving or 0, 'WITHSCORES')
  for i = 1, #head, 2 do
    if not is_leaving[head[i]] then return tonumber(head[i + 1]) end
  end
  return 0
end

-- Wake-ups are hints, told once per call.
local function tell(message) call('PUBLISH', KEY.wake, message) end
