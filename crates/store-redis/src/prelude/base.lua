-- The basis of every script: the codes of states, the shard's keys, the clock, and helpers for lists, hashes, sorted
-- sets, errors and wake-ups.
--
-- Every script takes one key, K: the base "<prefix>:{<tag>}" of a shard, or "<prefix>:{meta}" of the installation
-- for the scripts in `installation/`. All other keys begin with it. The header of a script names its key
-- (KEYS), and lists its arguments (ARGV) and its answer (Returns).
--
-- Data that a call reads or collects is kept in locals of the prelude, which `start` empties.
--
-- Strings are expensive: Redis's Lua hashes each byte of every string that it makes. Scripts therefore make few
-- large strings, make equal strings once, and keep jobs as short packed strings instead of tables. Calls into Redis
-- are expensive too, so one call serves many jobs.
local call, pack, read = redis.call, struct.pack, struct.unpack
local sub, byte, char, concat = string.sub, string.byte, string.char, table.concat
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

-- Codes of states. A job state has DELAYED for ready jobs too: only the indexes distinguish them.
local DELAYED, READY, RESERVED, DONE, DEAD, CANCELLED = 1, 2, 3, 4, 5, 6

-- An empty list or set, which nothing is added to.
local NONE = {}

-- Shards that were watched, or had an archive, when a script last read their fields, by their bases.
local is_uncommon = {}

local K, KEY
-- The store's clock, read once a call. NOW (ms) is rounded down for comparisons ("is it due?"). NOW_UP
-- (ms) is rounded up for additions, so that nothing happens early.
local NOW_US, NOW, NOW_UP

local function tick()
  local time = call('TIME')
  NOW_US = time[1] * 1000000 + time[2]
  NOW, NOW_UP = floor(NOW_US / 1000), ceil(NOW_US / 1000)
end

-- Returns the µs from now to a time in ms, 0 if it has passed. With ms a caller could sleep a part of one too long.
local function until_us(at) return max(0, at * 1000 - NOW_US) end
-- Returns the µs from now to a time in ms, 0 if it has passed; -1 if the time is 0, which stands for never.
local function wait_us(at) return at > 0 and until_us(at) or -1 end

-- The names of a shard's keys, made once for each shard. Some differ from the terms used here: ':due_lanes' says which
-- lane is due when, ':cancelled:' has the entries cancelled in a slot.
local known_keys = {}
local function keys_of(base)
  local prefix = string.match(base, '^(.-):{')
  local keys = {
    tag = string.match(base, '{(.*)}'),
    shard = base .. ':shard', pool = base .. ':pool', states = base .. ':states', body = base .. ':body:',
    due_lanes = base .. ':due_lanes', due = base .. ':due:', slot = base .. ':slot:', slots = base .. ':slots',
    cancelled_in_slot = base .. ':cancelled:', ready = base .. ':ready:', front = base .. ':front:',
    lanes = base .. ':lanes', pulls = base .. ':pulls', paused = base .. ':paused', leases = base .. ':leases',
    batches = base .. ':batches', caller = base .. ':caller:', dead = base .. ':dead', done = base .. ':done:',
    outbox = base .. ':outbox', tags = base .. ':tags', topics = base .. ':topics', index = base .. ':index', late = base .. ':late:',
    attempts = base .. ':attempts:', recurring = base .. ':schedules', recurring_times = base .. ':schedule-times',
    destinations = base .. ':destinations', limited = base .. ':limited', ordered = base .. ':ordered', heads = base .. ':heads:',
    behind = base .. ':behind:', archived_list = base .. ':archive', archived = base .. ':archive:', archiver = base .. ':archiver',
    -- Channels.
    wake = prefix .. ':wake', events = prefix .. ':events', policies = prefix .. ':policies',
  }
  known_keys[base] = keys
  return keys
end

-- Converts the place at which a page of an index ends from 8 bytes to 16 hex digits, and back.
local function place_of(bytes) return string.format('%08x%08x', read('>I4I4', bytes)) end
local function bytes_of(place) return pack('>I4I4', tonumber(sub(place, 1, 8), 16), tonumber(sub(place, 9), 16)) end

-- Jobs that share arguments are a group: a head of lane id (8 bytes), how many arguments a job has (1), how many jobs (4)
-- and what else they share, which begins at SHARED_AT; then the arguments of each job.
local SHARED_AT = 14
-- Returns how many arguments a job of a group has, and the index of its last one. `at` is the index of its head.
local function extent(args, at)
  local step, n = read('>BI4', args[at], 9)
  return step, at + step * n
end

-- Calls a command with a key and a list, in slices of 4,000 values, because `unpack` fails near 8,000. Pairs stay
-- together. Returns the answer to the last slice; nil for an empty list, for which nothing is called.
local function sliced(command, key, list)
  local n, answer = #list, nil
  if n <= 4000 then return n > 0 and call(command, key, unpack(list)) or nil end
  for i = 1, n, 4000 do answer = call(command, key, unpack(list, i, min(i + 3999, n))) end
  return answer
end

-- Returns the values of a hash, one for each name; false for a name without a value.
local function fetch(key, names)
  local n = #names
  if n == 0 then return {} end
  -- For one name HGET is cheaper.
  if n == 1 then return {call('HGET', key, names[1])} end
  if n <= 4000 then return call('HMGET', key, unpack(names)) end
  local all = {}
  for i = 1, n, 4000 do
    for _, value in ipairs(call('HMGET', key, unpack(names, i, min(i + 3999, n)))) do all[#all + 1] = value end
  end
  return all
end

-- Whether a hash has any of these names.
local function has_any(key, names)
  if #names == 1 then return call('HEXISTS', key, names[1]) == 1 end
  local values = fetch(key, names)
  for i = 1, #names do if values[i] then return true end end
  return false
end

local function append(lists, name, value)
  local list = lists[name]
  if list then list[#list + 1] = value else lists[name] = {value} end
end

-- Appends values to the list under a name. If there is none yet, the table `values` itself becomes the list.
local function append_all(lists, name, values)
  local list = lists[name]
  if not list then
    lists[name] = values
    return
  end
  local n = #list
  for i = 1, #values do list[n + i] = values[i] end
end

-- A whole number as an argument of a command: Redis would format it as a fraction, which takes three times as long.
local small = {}
for n = -1, 600 do small[n] = string.format('%d', n) end
local function whole(n) return small[n] or string.format('%d', n) end

local function six(number) return pack('>I6', number) end

-- Returns the lowest score of a sorted set without the members `leaving`, which are about to be removed; 0 for none. It
-- is read before the removal, because an emptied set cannot be read while its slot moves to another server.
local function first_score(key, leaving)
  local is_leaving = {}
  for _, member in ipairs(leaving or is_leaving) do is_leaving[member] = true end
  local head = call('ZRANGE', key, 0, leaving and #leaving or 0, 'WITHSCORES')
  for i = 1, #head, 2 do
    if not is_leaving[head[i]] then return tonumber(head[i + 1]) end
  end
  return 0
end

-- Raises an error that pcall has caught again. pcall makes a text of an error of a command, before which Redis would put
-- `ERR `; so such a text is raised as an error table, and its first word stays the error code.
local function raise(failure)
  local is_of_command = type(failure) == 'string' and string.find(failure, '^%u+ ')
  error(is_of_command and {err = failure} or failure, 0)
end

-- Publishes a wake-up: a hint that may get lost.
local function publish(message) call('PUBLISH', KEY.wake, message) end

-- Returns the server's run_id, which changes with a restart; '' if it is unknown. INFO is expensive and asked once: what
-- scripts remember is gone after a restart too.
local known_run_id
local function run_id()
  known_run_id = known_run_id or string.match(call('INFO', 'server'), 'run_id:(%x+)')
  return known_run_id or ''
end

-- Returns the first 8 digits of the run_id, which stand for one run of the server. A cursor of a scan is valid in it.
local function server_run() return sub(run_id(), 1, 8) end
