-- Finds and removes entries of the due index that lead to no delayed job. Transitions leave none, but one that failed
-- half-way can; promote counts each entry as a job.
-- Uses check, due_index, lanes, ready, records, shard.

local function load(entries)
  local locs = {}
  for i, entry in ipairs(entries) do locs[i] = sub(entry, 1, 12) end
  jobs.load(locs)
end

-- check_index: finds the lanes that have near entries, in a page of `index`. A lane that has no row, but entries in its
--   queue, gets a turn, so that reserve removes these entries.
-- KEYS  shard
-- ARGV  the arguments of a scan
-- Returns {run, where to go on ('0' is the end), {lane, ...}}; {run} if the scan began in another run
function scripts.check_index(args)
  shard.begin()
  local run, at, found = check.scan('ZSCAN', KEY.index, unpack(args))
  if not at then return {run} end
  local ids, near = {}, {}
  for i = 1, #found, 2 do
    local topic = lanes.topic(found[i])
    if #found[i] > #topic + 1 then ids[#ids + 1] = sub(found[i], #topic + 2) end
  end
  shard.load_rows(ids)
  for _, lane in ipairs(ids) do
    if call('EXISTS', due_index.key(lane)) == 1 then near[#near + 1] = lane end
    if not rows[lane] and ready.length(lane) > 0 then ready.add_turn(lane) end
  end
  ready.wake()
  return {run, at, near}
end

-- check_due: removes entries of a lane that lead to no job that is delayed until then, a page at a time.
-- KEYS  shard
-- ARGV  lane; then the arguments of a scan
-- Returns {run, where to go on ('0' is the end), how many were removed}; {run} if the scan began in another run
function scripts.check_due(args)
  shard.begin()
  local lane, entries, gone = args[1], {}, {}
  local key = due_index.key(lane)
  local run, at, found = check.scan('ZSCAN', key, unpack(args, 2))
  if not at then return {run} end
  for i = 1, #found, 2 do entries[#entries + 1] = found[i] end
  load(entries)
  for _, entry in ipairs(entries) do
    if not check.is_awaited(lane, entry) then gone[#gone + 1] = entry end
  end
  local is_all = #gone == call('ZCARD', key)
  sliced('ZREM', key, gone)
  if is_all then call('ZREM', KEY.due_lanes, lane) end
  return {run, at, #gone}
end

-- check_slot: marks entries of a slot as cancelled if they lead to no job that is delayed until then, or if the job has
--   a near entry too. The list is read from its end to its beginning, a page at a time.
-- KEYS  shard
-- ARGV  number of the slot, how many entries were read before, how many to read
-- Returns {how many were read, how many were marked}
function scripts.check_slot(args)
  shard.begin()
  local slot, skip, count = args[1], tonumber(args[2]), tonumber(args[3])
  local entries, gone = call('LRANGE', KEY.slot .. slot, -skip - count, -skip - 1), {}
  if #entries == 0 then return {0, 0} end
  local cancelled = KEY.cancelled_in_slot .. slot
  load(entries)
  for i, is_cancelled in ipairs(call('SMISMEMBER', cancelled, unpack(entries))) do
    local entry, lane = sub(entries[i], 1, 18), sub(entries[i], 19)
    local is_needed = check.is_awaited(lane, entry) and not call('ZSCORE', due_index.key(lane), entry)
    if is_cancelled == 0 and not is_needed then gone[#gone + 1] = entries[i] end
  end
  sliced('SADD', cancelled, gone)
  return {#entries, #gone}
end

-- check_slots: the numbers of the slots, a page at a time.
-- KEYS  shard
-- ARGV  the arguments of a scan
-- Returns {run, where to go on ('0' is the end), {number, ...}}; {run} if the scan began in another run
function scripts.check_slots(args)
  local run, at, found = check.scan('ZSCAN', KEY.slots, unpack(args))
  if not at then return {run} end
  local numbers = {}
  for i = 1, #found, 2 do numbers[#numbers + 1] = found[i] end
  return {run, at, numbers}
end
