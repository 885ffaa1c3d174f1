-- page: a page of the jobs that have not ended.
-- KEYS  shard
-- ARGV  where to read on ('0' is the start), the server's life in which the scan began, how many jobs to look
--   at, how many at a time, state or 0, topic or '', 1 when payloads are wanted, byte budget
-- Returns {life, where to go on ('0' is the end), {{locator, state, job state or '', lane name, record},
--   ...}}, the record without its payload unless that is wanted; {life} if the scan began
--   in another life
function edges.page(args)
  shard.begin(schedule.FIELDS)
  local at, left, step, wanted = args[1], tonumber(args[3]), tonumber(args[4]), tonumber(args[5])
  local topic, whole, budget = args[6], args[7] == '1', tonumber(args[8])
  local life = server_life()
  if at ~= '0' and args[2] ~= life then return {life} end

  local found = {}
  local function add(loc, raw)
    local name = lanes.name(record.lane(raw))
    if not name or topic ~= '' and lanes.topic(name) ~= topic then return end
    local code = schedule.code(loc, raw, states[loc])
    if wanted > 0 and code ~= wanted then return end
    found[#found + 1] = {loc, code, states[loc] or '', name, whole and raw or record.head(raw)}
    -- A payload with a key of its own is read afterwards, and counts here.
    if whole and record.is_external(raw) then budget = budget - read('>I4', raw, #raw - 3) end
  end

  -- A few at a time, so that it ends near the budget: a scan does not return to jobs that it has passed.
  for _ = 1, ceil(left / step) do
    local scanned = call('HSCAN', KEY.pool, at, 'COUNT', step)
    at = scanned[1]
    local locs, names, pairs_found = {}, {}, scanned[2]
    for i = 1, #pairs_found, 2 do
      local loc, raw = pairs_found[i], record.whole(pairs_found[i + 1])
      budget = budget - #pairs_found[i + 1]
      if raw then
        locs[#locs + 1], names[#names + 1] = loc, record.lane(raw)
        records[loc] = raw
      end
    end
    shard.load_rows(names)
    for i, s in ipairs(fetch(KEY.states, locs)) do
      local loc = locs[i]
      states[loc] = state.whole(s)
      if not s or states[loc] then add(loc, records[loc]) end
    end
    left = left - #pairs_found / 2
    if at == '0' or left <= 0 or budget <= 0 then break end
  end
  return {life, at, found}
end
