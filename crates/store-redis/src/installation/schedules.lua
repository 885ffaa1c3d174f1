-- The index of schedules by their keys. `schedules` has each as its name, a space and the topic of its jobs, which
-- determines its shard. After a failure the index may have a name without a schedule, but no schedule is without its
-- name.
local function listed() return K .. ':schedules' end

-- Returns the members with a prefix, in order. No name or topic has a byte as high as that of the end.
local function beginning_with(prefix, ...) return call('ZRANGE', listed(), '[' .. prefix, '(' .. prefix .. '\255', 'BYLEX', ...) end

-- list_schedule: adds a schedule to the index.
-- KEYS  installation
-- ARGV  name; topic; how many schedules there may be; if a tenant has them, what its names begin with, else ''; how
--   many it may have
-- Returns '' if it is there, now or before; '!' if there would be too many; or the topic that it has already
function scripts.list_schedule(args)
  local name, prefix = args[1] .. ' ', args[4]
  local known = beginning_with(name, 'LIMIT', 0, 1)[1]
  if known then
    local topic = sub(known, #name + 1)
    return topic == args[2] and '' or topic
  end
  local all, own = call('ZCARD', listed()), 0
  if prefix ~= '' then
    own = call('ZLEXCOUNT', listed(), '[' .. prefix, '(' .. prefix .. '\255')
    -- A tenant leaves as many free as it has.
    if own + 1 > min(tonumber(args[5]), (tonumber(args[3]) - all + own) / 2) then return '!' end
  end
  if all >= tonumber(args[3]) then return '!' end
  call('ZADD', listed(), 0, name .. args[2])
  return ''
end

-- unlist_schedule: removes a schedule from the index.
-- KEYS  installation
-- ARGV  name, topic
-- Returns 1 if it was there, else 0
function scripts.unlist_schedule(args) return call('ZREM', listed(), args[1] .. ' ' .. args[2]) end

-- unlisted_schedules: finds schedules that the index does not have.
-- KEYS  installation
-- ARGV  names and topics
-- Returns per schedule 1 if it is not there, else 0
function scripts.unlisted_schedules(args)
  local answers = {}
  for i = 1, #args, 2 do
    answers[#answers + 1] = call('ZSCORE', listed(), args[i] .. ' ' .. args[i + 1]) and 0 or 1
  end
  return answers
end

-- list_schedules: reads a page of the index, in the order of the names.
-- KEYS  installation
-- ARGV  what the names begin with; the member after which to begin, or ''; how many; 1 for only those that belong to no
--   tenant
-- Returns the members
function scripts.list_schedules(args)
  local low = args[2] ~= '' and '(' .. args[2] or args[1] ~= '' and '[' .. args[1] or '-'
  local high = args[1] ~= '' and '(' .. args[1] .. '\255' or args[4] == '1' and '(~' or '+'
  return call('ZRANGE', listed(), low, high, 'BYLEX', 'LIMIT', 0, args[3])
end
