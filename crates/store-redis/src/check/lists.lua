-- Lists and sets whose entries the consistency check reads or counts.
-- Uses check, due_index, leases, ready, shard.

-- check_entries: how many entries a page of lists and sets has.
-- KEYS  shard
-- ARGV  'lanes', 'pulls', 'paused', 'due_lanes', 'slots', 'batches' or 'leases', which are batches of one job; then the
--   arguments of a scan
-- Returns {run, where to go on ('0' is the end), entries}; {run} if the scan began in another run
function scripts.check_entries(args)
  shard.begin()
  local kind, sum = args[1], 0
  local run, at, found = check.scan(kind == 'batches' and 'HSCAN' or 'ZSCAN', KEY[kind], unpack(args, 2))
  if not at then return {run} end
  for i = 1, #found, 2 do
    local name = found[i]
    if kind == 'batches' then
      sum = sum + #found[i + 1] / 12
    elseif kind == 'leases' then
      sum = sum + (name == leases.number(name) and 0 or 1)
    elseif kind == 'due_lanes' then
      sum = sum + call('ZCARD', due_index.key(name))
    elseif kind == 'paused' then
      local lane = sub(name, -8)
      if not call('ZSCORE', ready.turns(lane), lane) then sum = sum + ready.length(lane) end
    else
      sum = sum + (kind == 'slots' and call('LLEN', KEY.slot .. name) or ready.length(name))
    end
  end
  return {run, at, floor(sum)}
end

-- check_lists: reads queues or slots, each from its end to its beginning. Entries are added at both ends and removed
--   at the beginning, so none is missed, unless a cleaning has moved entries meanwhile.
-- KEYS  shard
-- ARGV  'ready' or 'slot', how many entries of the first list were read before, how many entries to read,
--   and per list its lane or its slot's number
-- Returns {how many lists were read to their beginning, how many entries of the next one were read, {entries
--   of a list, ...}, how often a queue or slot was cleaned}
function scripts.check_lists(args)
  shard.begin()
  local is_queue, skip, left = args[1] == 'ready', tonumber(args[2]), tonumber(args[3])
  local done, lists = 0, {}
  for i = 4, #args do
    if left <= 0 then return {done, 0, lists, fields.unqueued} end
    local entries = is_queue and ready.range_from_end(args[i], skip, left)
      or call('LRANGE', KEY.slot .. args[i], -skip - left, -skip - 1)
    lists[#lists + 1] = concat(entries)
    if #entries == left then return {done, skip + left, lists, fields.unqueued} end
    -- An empty list costs a call too.
    left, skip, done = left - #entries - 5, 0, done + 1
  end
  return {done, 0, lists, fields.unqueued}
end
